#include "model/gguf/gguf_parser.h"

#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "base/limits.h"

namespace tandem {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignmentMin = 8;
constexpr uint64_t kAlignmentMax = 1 << 16;

// The least a value of each kind takes in a file, so that a count can be refused before it sizes
// anything.
constexpr uint64_t kStringBytesMin = 8;
constexpr uint64_t kArrayBytesMin = 12;
constexpr uint64_t kEntryBytesMin = 8 + 4 + 1;
constexpr uint64_t kTensorBytesMin = 8 + 4 + 4 + 8;

class Parser {
 public:
  Parser(std::span<const std::byte> file, std::string_view name) : file_(file), name_(name) {}

  Result<GgufHeader> parse() {
    uint64_t num_tensors = 0;
    uint64_t num_keys = 0;
    TANDEM_TRY(read_counts(num_tensors, num_keys));
    TANDEM_TRY(read_metadata(num_keys));
    TANDEM_TRY(read_alignment());
    TANDEM_TRY(read_tensors(num_tensors));
    TANDEM_TRY(place_tensors());
    return std::move(header_);
  }

 private:
  template <class... Args>
  Status error(const Args&... args) const {
    return invalid_argument(str_cat(name_, ": ", args...));
  }

  uint64_t remaining() const { return file_.size() - at_; }

  template <class T>
  Status read(T& value, const char* what) {
    if (remaining() < sizeof(T)) return error("file ends inside ", what);
    std::memcpy(&value, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return {};
  }

  Status read_text(std::string_view& text, uint64_t bytes_max, const char* what) {
    uint64_t bytes = 0;
    TANDEM_TRY(read(bytes, what));
    if (bytes > bytes_max) return error(what, " has ", bytes, " bytes, the limit is ", bytes_max);
    if (bytes > remaining()) return error("file ends inside ", what);
    text = {reinterpret_cast<const char*>(file_.data() + at_), static_cast<size_t>(bytes)};
    at_ += bytes;
    return {};
  }

  Status read_type(GgufType& type, std::string_view key) {
    uint32_t id = 0;
    TANDEM_TRY(read(id, "a value type"));
    if (id > static_cast<uint32_t>(GgufType::kF64)) {
      return error("key ", printable(key), " has unknown value type ", id);
    }
    type = static_cast<GgufType>(id);
    return {};
  }

  Status read_counts(uint64_t& num_tensors, uint64_t& num_keys) {
    char magic[4] = {};
    uint32_t version = 0;
    if (remaining() < sizeof(magic)) return error("is no GGUF file (it is too short)");
    TANDEM_TRY(read(magic, "the magic"));
    if (std::memcmp(magic, "GGUF", sizeof(magic)) != 0) return error("is no GGUF file");
    TANDEM_TRY(read(version, "the version"));
    if (version == (kVersion << 24)) return error("is a big-endian GGUF file; only little-endian");
    if (version != kVersion) return error("has GGUF version ", version, ", need ", kVersion);
    TANDEM_TRY(read(num_tensors, "the tensor count"));
    TANDEM_TRY(read(num_keys, "the key count"));
    if (num_tensors > kGgufTensorsMax) {
      return error("claims ", num_tensors, " tensors, the limit is ", kGgufTensorsMax);
    }
    if (num_keys > kGgufKeysMax) {
      return error("claims ", num_keys, " keys, the limit is ", kGgufKeysMax);
    }
    if (num_keys > remaining() / kEntryBytesMin) {
      return error("claims ", num_keys, " keys, more than the file can hold");
    }
    return {};
  }

  Status read_metadata(uint64_t num_keys) {
    std::unordered_set<std::string_view> seen;
    header_.metadata.reserve(num_keys);
    for (uint64_t i = 0; i < num_keys; ++i) {
      std::string_view key;
      TANDEM_TRY(read_text(key, kGgufNameBytesMax, "a metadata key"));
      if (key.empty()) return error("metadata entry ", i, " has an empty key");
      if (!seen.insert(key).second) return error("key ", printable(key), " appears twice");
      GgufValue value;
      TANDEM_TRY(read_type(value.type, key));
      TANDEM_TRY(read_value(value, key, 0));
      header_.metadata.emplace_back(key, std::move(value));
    }
    return {};
  }

  // `value.type` is set; reads the rest.
  Status read_value(GgufValue& value, std::string_view key, int depth) {
    if (value.type == GgufType::kString) {
      return read_text(value.text, kGgufStringBytesMax, "a string value");
    }
    if (value.type == GgufType::kArray) return read_array(value, key, depth + 1);
    const uint64_t bytes = gguf_scalar_bytes(value.type);
    if (remaining() < bytes) return error("file ends inside the value of key ", printable(key));
    value.data = file_.data() + at_;
    at_ += bytes;
    return check_bools(value.type, value.data, 1, key);
  }

  Status read_array(GgufValue& value, std::string_view key, int depth) {
    if (depth > kGgufArrayDepthMax) {
      return error(
          "key ", printable(key), " nests arrays deeper than ", kGgufArrayDepthMax, " levels");
    }
    TANDEM_TRY(read_type(value.item_type, key));
    TANDEM_TRY(read(value.num_items, "an array length"));
    if (value.num_items > kGgufArrayItemsMax) {
      return error(
          "key ", printable(key), " has ", value.num_items, " items, the limit is ",
          kGgufArrayItemsMax);
    }
    const bool strings = value.item_type == GgufType::kString;
    const bool arrays = value.item_type == GgufType::kArray;
    const uint64_t item_bytes = strings  ? kStringBytesMin
                                : arrays ? kArrayBytesMin
                                         : gguf_scalar_bytes(value.item_type);
    if (value.num_items > remaining() / item_bytes) {
      return error(
          "key ", printable(key), " claims ", value.num_items,
          " items, more than the file can hold");
    }
    if (strings) return read_strings(value);
    if (arrays) return read_arrays(value, key, depth);
    value.data = file_.data() + at_;
    at_ += value.num_items * item_bytes;
    return check_bools(value.item_type, value.data, value.num_items, key);
  }

  Status read_strings(GgufValue& value) {
    value.strings.resize(value.num_items);
    for (std::string_view& text : value.strings) {
      TANDEM_TRY(read_text(text, kGgufStringBytesMax, "a string value"));
    }
    return {};
  }

  Status read_arrays(GgufValue& value, std::string_view key, int depth) {
    // Grown as items are read: a nested value is larger in memory than in the file.
    for (uint64_t i = 0; i < value.num_items; ++i) {
      GgufValue item;
      item.type = GgufType::kArray;
      TANDEM_TRY(read_array(item, key, depth + 1));
      value.arrays.push_back(std::move(item));
    }
    return {};
  }

  Status check_bools(GgufType type, const std::byte* data, uint64_t count, std::string_view key) {
    if (type != GgufType::kBool) return {};
    for (uint64_t i = 0; i < count; ++i) {
      const auto byte = std::to_integer<int>(data[i]);
      if (byte > 1) return error("key ", printable(key), " has the boolean value ", byte);
    }
    return {};
  }

  Status read_alignment() {
    for (const auto& [key, value] : header_.metadata) {
      if (key != "general.alignment") continue;
      const auto alignment = value.type == GgufType::kArray ? std::nullopt : value.as_u64();
      if (!alignment) {
        return error("key general.alignment: expected an integer, found ", value.type_text());
      }
      if (!std::has_single_bit(*alignment) || *alignment < kAlignmentMin ||
          *alignment > kAlignmentMax) {
        return error(
            "general.alignment is ", *alignment, ", need a power of two from ", kAlignmentMin,
            " to ", kAlignmentMax);
      }
      header_.alignment = *alignment;
    }
    return {};
  }

  Status read_tensors(uint64_t num_tensors) {
    if (num_tensors > remaining() / kTensorBytesMin) {
      return error("claims ", num_tensors, " tensors, more than the file can hold");
    }
    std::unordered_set<std::string_view> seen;
    header_.tensors.reserve(num_tensors);
    offsets_.reserve(num_tensors);
    uint64_t total_bytes = 0;
    for (uint64_t i = 0; i < num_tensors; ++i) {
      TensorInfo tensor;
      TANDEM_TRY(read_text(tensor.name, kGgufNameBytesMax, "a tensor name"));
      if (tensor.name.empty()) return error("tensor ", i, " has an empty name");
      if (!seen.insert(tensor.name).second) {
        return error("tensor ", printable(tensor.name), " appears twice");
      }
      TANDEM_TRY(read_shape(tensor));
      if (tensor.bytes > std::numeric_limits<uint64_t>::max() - total_bytes) {
        return error("tensor ", printable(tensor.name), ": total size overflows");
      }
      total_bytes += tensor.bytes;
      header_.tensors.push_back(std::move(tensor));
    }
    return {};
  }

  Status read_shape(TensorInfo& tensor) {
    uint32_t num_dims = 0;
    TANDEM_TRY(read(num_dims, "a tensor entry"));
    if (num_dims < 1 || num_dims > static_cast<uint32_t>(kGgufDimsMax)) {
      return error(
          "tensor ", printable(tensor.name), " has ", num_dims, " dimensions, need 1 to ",
          kGgufDimsMax);
    }
    tensor.dims.resize(num_dims);
    for (uint64_t& dim : tensor.dims) TANDEM_TRY(read(dim, "a tensor entry"));
    uint32_t type_id = 0;
    uint64_t offset = 0;
    TANDEM_TRY(read(type_id, "a tensor entry"));
    TANDEM_TRY(read(offset, "a tensor entry"));
    const auto dtype = from_ggml_id(type_id);
    if (!dtype) return error("tensor ", printable(tensor.name), " has unknown type id ", type_id);
    tensor.dtype = *dtype;
    const auto bytes = tensor_bytes(tensor.dtype, tensor.dims);
    if (!bytes.ok())
      return error("tensor ", printable(tensor.name), ": ", bytes.status().message());
    tensor.bytes = *bytes;
    offsets_.push_back(offset);
    return {};
  }

  Status place_tensors() {
    const uint64_t mask = header_.alignment - 1;
    header_.data_offset = (at_ + mask) & ~mask;
    if (header_.tensors.empty()) return {};
    if (header_.data_offset > file_.size()) return error("file ends before the tensor data");
    const uint64_t data_bytes = file_.size() - header_.data_offset;
    for (size_t i = 0; i < header_.tensors.size(); ++i) {
      TensorInfo& tensor = header_.tensors[i];
      if ((offsets_[i] & mask) != 0) {
        return error(
            "tensor ", printable(tensor.name), " starts at offset ", offsets_[i],
            ", which is no multiple of ", header_.alignment);
      }
      if (tensor.bytes > data_bytes || offsets_[i] > data_bytes - tensor.bytes) {
        return error(
            "tensor ", printable(tensor.name), " (offset ", offsets_[i], ", ", tensor.bytes,
            " bytes) ends outside the file, which has ", data_bytes, " bytes of tensor data");
      }
      tensor.data = file_.data() + header_.data_offset + offsets_[i];
    }
    return {};
  }

  std::span<const std::byte> file_;
  std::string_view name_;
  size_t at_ = 0;
  GgufHeader header_;
  std::vector<uint64_t> offsets_;
};

}  // namespace

Result<GgufHeader> parse_gguf(std::span<const std::byte> file, std::string_view name) {
  return Parser(file, name).parse();
}

}  // namespace tandem
