#include "model/gguf/describe.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

struct TypeTotal {
  uint64_t num_tensors = 0;
  uint64_t num_values = 0;
  uint64_t bytes = 0;
};

uint64_t num_values(const TensorInfo& tensor) {
  uint64_t count = 1;  // the reader has checked that the product fits
  for (const uint64_t dim : tensor.dims) count *= dim;
  return count;
}

std::map<std::string, TypeTotal> totals_by_type(const GgufFile& file) {
  std::map<std::string, TypeTotal> totals;
  for (const TensorInfo& tensor : file.tensors()) {
    TypeTotal& total = totals[dtype_name(tensor.dtype)];
    ++total.num_tensors;
    total.num_values += num_values(tensor);
    total.bytes += tensor.bytes;
  }
  return totals;
}

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text;
}

// The bytes of one UTF-8 character at the start of `text` that a terminal may be sent, or 0:
// control characters and malformed sequences are not.
size_t shown_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xc2 && byte(1) < 0xa0) return 0;  // C1 controls
  return size;
}

std::string shown_text(std::string_view text, size_t bytes_max) {
  std::string out;
  size_t at = 0;
  while (at < text.size() && at < bytes_max) {
    const size_t size = shown_character(text.substr(at));
    out += size > 0 ? std::string(text.substr(at, size)) : printable(text.substr(at, 1));
    at += std::max<size_t>(size, 1);
  }
  if (at < text.size()) out += str_cat("... (", text.size(), " bytes)");
  return out;
}

// Shortest decimal that reads back as the same float or double.
std::string number_text(double value, bool is_f32) {
  char text[32];
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    const double read = std::strtod(text, nullptr);
    if (is_f32 ? static_cast<float>(read) == static_cast<float>(value) : read == value) break;
  }
  return text;
}

std::string scalar_text(const GgufValue& value, GgufType type, uint64_t i) {
  if (type == GgufType::kBool) return *value.as_bool(i) ? "true" : "false";
  if (gguf_is_float(type)) return number_text(*value.as_f64(i), type == GgufType::kF32);
  if (const auto number = value.as_i64(i)) return str_cat(*number);
  return str_cat(*value.as_u64(i));
}

std::string value_text(const GgufValue& value, const DescribeOptions& options) {
  if (value.type == GgufType::kString) return shown_text(value.text, options.text_bytes_shown);
  if (value.type != GgufType::kArray) return scalar_text(value, value.type, 0);
  std::string out = "[";
  const uint64_t shown = std::min<uint64_t>(value.num_items, options.items_shown);
  for (uint64_t i = 0; i < shown; ++i) {
    if (i > 0) out += ", ";
    if (value.item_type == GgufType::kString) {
      out += '"' + shown_text(value.strings[i], options.text_bytes_shown) + '"';
    } else if (value.item_type == GgufType::kArray) {
      out += value_text(value.arrays[i], options);
    } else {
      out += scalar_text(value, value.item_type, i);
    }
  }
  if (shown < value.num_items) out += str_cat(", ... (", value.num_items, " items)");
  return out + "]";
}

std::string dims_text(const TensorInfo& tensor) {
  std::string out;
  for (const uint64_t dim : tensor.dims) out += str_cat(out.empty() ? "" : " x ", dim);
  return out;
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

Json scalar_json(const GgufValue& value, GgufType type, uint64_t i) {
  if (type == GgufType::kBool) return *value.as_bool(i);
  if (type == GgufType::kF32) return static_cast<float>(*value.as_f64(i));
  if (type == GgufType::kF64) return *value.as_f64(i);
  if (const auto number = value.as_i64(i)) return *number;
  return *value.as_u64(i);
}

Json value_json(const GgufValue& value, const DescribeOptions& options) {
  if (value.type == GgufType::kString) return {{"type", "string"}, {"value", value.text}};
  if (value.type != GgufType::kArray) {
    return {{"type", gguf_type_name(value.type)}, {"value", scalar_json(value, value.type, 0)}};
  }
  Json items = Json::array();
  const uint64_t shown = std::min<uint64_t>(value.num_items, options.items_shown);
  for (uint64_t i = 0; i < shown; ++i) {
    if (value.item_type == GgufType::kString) {
      items.push_back(value.strings[i]);
    } else if (value.item_type == GgufType::kArray) {
      items.push_back(value_json(value.arrays[i], options));
    } else {
      items.push_back(scalar_json(value, value.item_type, i));
    }
  }
  return {{"type", value.type_text()}, {"count", value.num_items}, {"first", std::move(items)}};
}

}  // namespace

std::string describe_text(const GgufFile& file, const DescribeOptions& options) {
  const auto totals = totals_by_type(file);
  uint64_t parameters = 0;
  for (const auto& [type, total] : totals) parameters += total.num_values;
  std::string out = str_cat(
      "file        ", shown_text(file.name(), file.name().size()), "\nsize        ",
      size_text(file.file_bytes()), " (", file.file_bytes(), " bytes) in ", file.num_splits(),
      file.num_splits() == 1 ? " file" : " files", "\nalignment   ", file.alignment(),
      "\nparameters  ", parameters, "\n\nmetadata (", file.metadata().size(), ")\n");
  size_t key_width = 0;
  for (const auto& [key, value] : file.metadata()) key_width = std::max(key_width, key.size());
  key_width = std::min<size_t>(key_width, 48);
  for (const auto& [key, value] : file.metadata()) {
    out += str_cat(
        "  ", padded(shown_text(key, key.size()), key_width), "  ", padded(value.type_text(), 15),
        "  ", value_text(value, options), "\n");
  }
  out += str_cat("\ntensors (", file.tensors().size(), ")\n");
  size_t name_width = 0;
  for (const TensorInfo& t : file.tensors()) name_width = std::max(name_width, t.name.size());
  name_width = std::min<size_t>(name_width, 48);
  for (const TensorInfo& tensor : file.tensors()) {
    if (!options.tensors) break;
    out += str_cat(
        "  ", padded(shown_text(tensor.name, tensor.name.size()), name_width), "  ",
        padded(dtype_name(tensor.dtype), 8), "  ", padded(dims_text(tensor), 20), "  ",
        size_text(tensor.bytes), "\n");
  }
  out += "\ntypes\n";
  for (const auto& [type, total] : totals) {
    out += str_cat(
        "  ", padded(type, 8), "  ", padded(str_cat(total.num_tensors, " tensors"), 14), "  ",
        padded(size_text(total.bytes), 12), "  ", total.num_values, " values\n");
  }
  return out;
}

std::string describe_json(const GgufFile& file, const DescribeOptions& options) {
  Json metadata = Json::object();
  for (const auto& [key, value] : file.metadata()) {
    metadata[std::string(key)] = value_json(value, options);
  }
  Json tensors = Json::array();
  for (const TensorInfo& tensor : file.tensors()) {
    if (!options.tensors) break;
    tensors.push_back(
        {{"name", tensor.name},
         {"type", dtype_name(tensor.dtype)},
         {"dims", tensor.dims},
         {"bytes", tensor.bytes},
         {"split", tensor.split_idx}});
  }
  Json types = Json::object();
  uint64_t parameters = 0;
  for (const auto& [type, total] : totals_by_type(file)) {
    parameters += total.num_values;
    types[type] = {
        {"tensors", total.num_tensors}, {"values", total.num_values}, {"bytes", total.bytes}};
  }
  const Json out = {
      {"file", file.name()},
      {"bytes", file.file_bytes()},
      {"splits", file.num_splits()},
      {"alignment", file.alignment()},
      {"parameters", parameters},
      {"num_tensors", file.tensors().size()},
      {"metadata", std::move(metadata)},
      {"tensors", std::move(tensors)},
      {"types", std::move(types)}};
  // Replacing wrong bytes is what keeps this from throwing on a hostile file.
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tandem
