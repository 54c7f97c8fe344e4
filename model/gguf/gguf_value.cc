#include "model/gguf/gguf_value.h"

#include <cstring>
#include <limits>

#include "base/check.h"

namespace tandem {
namespace {

template <class T>
T load(const std::byte* data, uint64_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

// Any integer as sign and magnitude, so that both u64 and i64 can be checked for range.
struct Integer {
  bool negative;
  uint64_t bits;  // two's complement
};

template <class T>
Integer integer_of(const std::byte* data, uint64_t i) {
  const T value = load<T>(data, i);
  return {value < T{0}, static_cast<uint64_t>(value)};
}

std::optional<Integer> load_integer(GgufType type, const std::byte* data, uint64_t i) {
  switch (type) {
    case GgufType::kU8: return integer_of<uint8_t>(data, i);
    case GgufType::kI8: return integer_of<int8_t>(data, i);
    case GgufType::kU16: return integer_of<uint16_t>(data, i);
    case GgufType::kI16: return integer_of<int16_t>(data, i);
    case GgufType::kU32: return integer_of<uint32_t>(data, i);
    case GgufType::kI32: return integer_of<int32_t>(data, i);
    case GgufType::kU64: return integer_of<uint64_t>(data, i);
    case GgufType::kI64: return integer_of<int64_t>(data, i);
    case GgufType::kF32:
    case GgufType::kF64:
    case GgufType::kBool:
    case GgufType::kString:
    case GgufType::kArray: return std::nullopt;
  }
  TANDEM_UNREACHABLE();
}

GgufType element_type(const GgufValue& value, uint64_t i) {
  if (value.type != GgufType::kArray) {
    TANDEM_CHECK(i == 0);
    return value.type;
  }
  TANDEM_CHECK(i < value.num_items);
  return value.item_type;
}

}  // namespace

const char* gguf_type_name(GgufType type) {
  switch (type) {
    case GgufType::kU8: return "u8";
    case GgufType::kI8: return "i8";
    case GgufType::kU16: return "u16";
    case GgufType::kI16: return "i16";
    case GgufType::kU32: return "u32";
    case GgufType::kI32: return "i32";
    case GgufType::kF32: return "f32";
    case GgufType::kBool: return "bool";
    case GgufType::kString: return "string";
    case GgufType::kArray: return "array";
    case GgufType::kU64: return "u64";
    case GgufType::kI64: return "i64";
    case GgufType::kF64: return "f64";
  }
  TANDEM_UNREACHABLE();
}

uint64_t gguf_scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool: return 1;
    case GgufType::kU16:
    case GgufType::kI16: return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32: return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64: return 8;
    case GgufType::kString:
    case GgufType::kArray: return 0;
  }
  TANDEM_UNREACHABLE();
}

std::optional<uint64_t> GgufValue::as_u64(uint64_t i) const {
  const auto integer = load_integer(element_type(*this, i), data, i);
  if (!integer || integer->negative) return std::nullopt;
  return integer->bits;
}

std::optional<int64_t> GgufValue::as_i64(uint64_t i) const {
  const auto integer = load_integer(element_type(*this, i), data, i);
  if (!integer) return std::nullopt;
  const auto largest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!integer->negative && integer->bits > largest) return std::nullopt;
  return static_cast<int64_t>(integer->bits);
}

std::optional<double> GgufValue::as_f64(uint64_t i) const {
  const GgufType from = element_type(*this, i);
  if (from == GgufType::kF32) return static_cast<double>(load<float>(data, i));
  if (from == GgufType::kF64) return load<double>(data, i);
  const auto integer = load_integer(from, data, i);
  if (!integer) return std::nullopt;
  return integer->negative ? static_cast<double>(static_cast<int64_t>(integer->bits))
                           : static_cast<double>(integer->bits);
}

std::optional<bool> GgufValue::as_bool(uint64_t i) const {
  if (element_type(*this, i) != GgufType::kBool) return std::nullopt;
  return load<uint8_t>(data, i) != 0;
}

std::string GgufValue::type_text() const {
  if (type != GgufType::kArray) return gguf_type_name(type);
  return std::string("array of ") + gguf_type_name(item_type);
}

std::string printable(std::string_view text) {
  constexpr size_t kShownMax = 128;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, kShownMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 32 && byte < 127) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  if (text.size() > kShownMax) out += "...";
  return out;
}

}  // namespace tandem
