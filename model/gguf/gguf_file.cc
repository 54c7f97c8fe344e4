#include "model/gguf/gguf_file.h"

#include <cstdio>
#include <optional>
#include <utility>

#include "base/limits.h"

namespace tandem {
namespace {

// "<stem>-0000K-of-0000N.gguf"
struct SplitName {
  std::string stem;
  int number = 0;  // from 1
  int count = 0;

  std::string path(int wanted) const {
    char suffix[32];
    std::snprintf(suffix, sizeof(suffix), "-%05d-of-%05d.gguf", wanted, count);
    return stem + suffix;
  }
};

std::optional<int> five_digits(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<SplitName> parse_split_name(std::string_view path) {
  constexpr std::string_view kPattern = "-00000-of-00000.gguf";
  if (path.size() < kPattern.size()) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kPattern.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") {
    return std::nullopt;
  }
  const auto number = five_digits(tail.substr(1, 5));
  const auto count = five_digits(tail.substr(10, 5));
  if (!number || !count) return std::nullopt;
  return SplitName{std::string(path.substr(0, path.size() - kPattern.size())), *number, *count};
}

}  // namespace

Result<GgufFile> GgufFile::open(const std::string& path) {
  GgufFile file;
  file.name_ = path;
  const auto split = parse_split_name(path);
  if (split) {
    TANDEM_REQUIRE(
        split->number >= 1 && split->number <= split->count && split->count <= kGgufSplitsMax,
        str_cat(path, ": file name says part ", split->number, " of ", split->count));
    file.num_splits_ = split->count;
  }
  for (int i = 0; i < file.num_splits_; ++i) {
    const std::string part_path = split ? split->path(i + 1) : path;
    TANDEM_TRY_ASSIGN(MappedFile mapped, MappedFile::open(part_path));
    TANDEM_TRY(file.add(mapped.bytes(), part_path, i));
    file.files_.push_back(std::move(mapped));
  }
  TANDEM_TRY(file.check_totals());
  return file;
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string name) {
  GgufFile file;
  file.name_ = std::move(name);
  TANDEM_TRY(file.add(bytes, file.name_, 0));
  TANDEM_TRY(file.check_totals());
  return file;
}

Status GgufFile::add(
    std::span<const std::byte> bytes, const std::string& part_name, int split_idx) {
  TANDEM_TRY_ASSIGN(GgufHeader header, parse_gguf(bytes, part_name));
  TANDEM_TRY(check_split(header, part_name, split_idx));
  if (split_idx == 0) {
    alignment_ = header.alignment;
    metadata_ = std::move(header.metadata);
    for (size_t i = 0; i < metadata_.size(); ++i) key_idx_.emplace(metadata_[i].first, i);
  }
  for (TensorInfo& tensor : header.tensors) {
    tensor.split_idx = split_idx;
    if (!tensor_idx_.emplace(tensor.name, tensors_.size()).second) {
      return invalid_argument(str_cat(
          part_name, ": tensor ", printable(tensor.name),
          " is already in another file of the split"));
    }
    tensors_.push_back(std::move(tensor));
  }
  file_bytes_ += bytes.size();
  return {};
}

Status GgufFile::check_split(
    const GgufHeader& header, const std::string& part_name, int split_idx) const {
  for (const auto& [key, value] : header.metadata) {
    const bool is_number = key == "split.no";
    if (!is_number && key != "split.count") continue;
    const auto found = value.type == GgufType::kArray ? std::nullopt : value.as_u64();
    if (!found) {
      return invalid_argument(
          str_cat(part_name, ": key ", key, ": expected an integer, found ", value.type_text()));
    }
    // A file that was not split may say so with a count of 0 or 1.
    if (!is_number && num_splits_ == 1 && *found <= 1) continue;
    const auto expected = static_cast<uint64_t>(is_number ? split_idx : num_splits_);
    if (*found != expected) {
      return invalid_argument(str_cat(
          part_name, ": ", key, " is ", *found, ", expected ", expected, " from the file name",
          num_splits_ == 1 ? " (a split model is opened by its first file's full name)" : ""));
    }
  }
  return {};
}

Status GgufFile::check_totals() const {
  if (!has("split.tensors.count")) return {};
  TANDEM_TRY_ASSIGN(const uint64_t expected, get_u64("split.tensors.count"));
  if (expected == tensors_.size()) return {};
  return error(str_cat(
      "split.tensors.count is ", expected, ", but the files hold ", tensors_.size(), " tensors"));
}

const TensorInfo* GgufFile::find_tensor(std::string_view tensor_name) const {
  const auto it = tensor_idx_.find(tensor_name);
  return it == tensor_idx_.end() ? nullptr : &tensors_[it->second];
}

const GgufValue* GgufFile::find_value(std::string_view key) const {
  const auto it = key_idx_.find(key);
  return it == key_idx_.end() ? nullptr : &metadata_[it->second].second;
}

Status GgufFile::error(std::string_view message) const {
  return invalid_argument(str_cat(name_, ": ", message));
}

Result<const GgufValue*> GgufFile::require(std::string_view key, const char* expected) const {
  const GgufValue* value = find_value(key);
  if (value != nullptr) return value;
  return Status(
      StatusCode::kNotFound,
      str_cat(name_, ": key ", printable(key), " is missing (expected ", expected, ")"));
}

Status GgufFile::wrong_type(
    std::string_view key, const char* expected, const GgufValue& found) const {
  return error(
      str_cat("key ", printable(key), ": expected ", expected, ", found ", found.type_text()));
}

namespace {

// What makes one scalar kind readable: a name for messages, the types that can hold it and how one
// element is read.
struct U64Kind {
  using Type = uint64_t;
  static constexpr const char* kName = "an unsigned integer";
  static constexpr const char* kArrayName = "an array of unsigned integers";
  static bool accepts(GgufType type) { return gguf_is_integer(type); }
  static std::optional<uint64_t> read(const GgufValue& value, uint64_t i) {
    return value.as_u64(i);
  }
};
struct I64Kind {
  using Type = int64_t;
  static constexpr const char* kName = "an integer";
  static constexpr const char* kArrayName = "an array of integers";
  static bool accepts(GgufType type) { return gguf_is_integer(type); }
  static std::optional<int64_t> read(const GgufValue& value, uint64_t i) { return value.as_i64(i); }
};
struct F64Kind {
  using Type = double;
  static constexpr const char* kName = "a number";
  static constexpr const char* kArrayName = "an array of numbers";
  static bool accepts(GgufType type) { return gguf_is_integer(type) || gguf_is_float(type); }
  static std::optional<double> read(const GgufValue& value, uint64_t i) { return value.as_f64(i); }
};
struct BoolKind {
  using Type = bool;
  static constexpr const char* kName = "a boolean";
  static bool accepts(GgufType type) { return type == GgufType::kBool; }
  static std::optional<bool> read(const GgufValue& value, uint64_t i) { return value.as_bool(i); }
};

// Nothing with `fits` false: the type is right and the number out of range.
template <class Kind>
std::optional<typename Kind::Type> read_scalar(const GgufValue& value, bool& fits) {
  fits = true;
  if (!Kind::accepts(value.type)) return std::nullopt;
  const auto result = Kind::read(value, 0);
  fits = result.has_value();
  return result;
}

template <class Kind>
std::optional<std::vector<typename Kind::Type>> read_array(const GgufValue& value, bool& fits) {
  fits = true;
  if (value.type != GgufType::kArray || !Kind::accepts(value.item_type)) return std::nullopt;
  std::vector<typename Kind::Type> items;
  items.reserve(value.num_items);
  for (uint64_t i = 0; i < value.num_items; ++i) {
    const auto item = Kind::read(value, i);
    if (!item) {
      fits = false;
      return std::nullopt;
    }
    items.push_back(*item);
  }
  return items;
}

}  // namespace

template <class T, class Read>
Result<T> GgufFile::get(std::string_view key, const char* expected, Read read) const {
  TANDEM_TRY_ASSIGN(const GgufValue* value, require(key, expected));
  bool fits = true;
  auto result = read(*value, fits);
  if (result) return std::move(*result);
  if (fits) return wrong_type(key, expected, *value);
  return error(
      str_cat("key ", printable(key), ": expected ", expected, ", found a number out of range"));
}

Result<uint64_t> GgufFile::get_u64(std::string_view key) const {
  return get<uint64_t>(key, U64Kind::kName, read_scalar<U64Kind>);
}
Result<int64_t> GgufFile::get_i64(std::string_view key) const {
  return get<int64_t>(key, I64Kind::kName, read_scalar<I64Kind>);
}
Result<double> GgufFile::get_f64(std::string_view key) const {
  return get<double>(key, F64Kind::kName, read_scalar<F64Kind>);
}
Result<bool> GgufFile::get_bool(std::string_view key) const {
  return get<bool>(key, BoolKind::kName, read_scalar<BoolKind>);
}
Result<std::vector<uint64_t>> GgufFile::get_u64_array(std::string_view key) const {
  return get<std::vector<uint64_t>>(key, U64Kind::kArrayName, read_array<U64Kind>);
}
Result<std::vector<int64_t>> GgufFile::get_i64_array(std::string_view key) const {
  return get<std::vector<int64_t>>(key, I64Kind::kArrayName, read_array<I64Kind>);
}
Result<std::vector<double>> GgufFile::get_f64_array(std::string_view key) const {
  return get<std::vector<double>>(key, F64Kind::kArrayName, read_array<F64Kind>);
}

Result<std::string_view> GgufFile::get_string(std::string_view key) const {
  TANDEM_TRY_ASSIGN(const GgufValue* value, require(key, "a string"));
  if (value->type != GgufType::kString) return wrong_type(key, "a string", *value);
  return value->text;
}

Result<std::span<const std::string_view>> GgufFile::get_string_array(std::string_view key) const {
  TANDEM_TRY_ASSIGN(const GgufValue* value, require(key, "an array of strings"));
  if (value->type != GgufType::kArray || value->item_type != GgufType::kString) {
    return wrong_type(key, "an array of strings", *value);
  }
  return std::span<const std::string_view>(value->strings);
}

}  // namespace tandem
