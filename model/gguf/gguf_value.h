#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// The value types of GGUF metadata, with the numbers of the format.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// "u32", "f32", "string", "array", ...
const char* gguf_type_name(GgufType type);

/// Bytes of one value of a fixed-size type; 0 for strings and arrays.
uint64_t gguf_scalar_bytes(GgufType type);

constexpr bool gguf_is_integer(GgufType type) {
  return type != GgufType::kF32 && type != GgufType::kF64 && type != GgufType::kBool &&
         type != GgufType::kString && type != GgufType::kArray;
}
constexpr bool gguf_is_float(GgufType type) {
  return type == GgufType::kF32 || type == GgufType::kF64;
}

/// One metadata value. Everything it holds is a view into the file's bytes, so a vocabulary costs
/// one string_view a token and a numeric array costs nothing; valid while the file is open.
struct GgufValue {
  GgufType type = GgufType::kU8;
  GgufType item_type = GgufType::kU8;     // of an array
  uint64_t num_items = 0;                 // of an array
  const std::byte* data = nullptr;        // a scalar, or the items of a scalar array; little-endian
  std::string_view text;                  // a string
  std::vector<std::string_view> strings;  // an array of strings
  std::vector<GgufValue> arrays;          // an array of arrays

  /// The scalar or scalar-array item `i` in the wanted kind; nothing if the value is of another
  /// kind or does not fit. Limits: i < num_items for an array, i = 0 for a scalar.
  std::optional<uint64_t> as_u64(uint64_t i = 0) const;
  std::optional<int64_t> as_i64(uint64_t i = 0) const;
  std::optional<double> as_f64(uint64_t i = 0) const;  // integers count as numbers too
  std::optional<bool> as_bool(uint64_t i = 0) const;

  /// "u32", or "array of string".
  std::string type_text() const;
};

/// `text` with control characters and bytes above 126 escaped, cut at 128 bytes: for messages about
/// names that come from a file.
std::string printable(std::string_view text);

}  // namespace tandem
