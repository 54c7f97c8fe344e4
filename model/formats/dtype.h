#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/check.h"
#include "base/status.h"

namespace tandem {

/// How the values of a tensor are stored. The list is closed: these are the types the runtime
/// computes with.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ2_K,
  kQ4_K,
  kQ6_K,
  kIQ2_XXS,
  kMXFP4,
  kI32
};

inline constexpr DType kAllDTypes[] = {DType::kF32,   DType::kF16,  DType::kBF16, DType::kQ8_0,
                                       DType::kQ2_K,  DType::kQ4_K, DType::kQ6_K, DType::kIQ2_XXS,
                                       DType::kMXFP4, DType::kI32};

/// The type's name as the GGUF world writes it: "F32", "Q4_K", "IQ2_XXS", ...
const char* dtype_name(DType dtype);

/// The type of a GGUF tensor type id; nothing if this runtime does not know the id.
std::optional<DType> from_ggml_id(uint32_t id);
uint32_t ggml_id(DType dtype);

/// Consecutive values of a row that are stored together: 1, 32 or 256.
constexpr int block_values(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kI32: return 1;
    case DType::kQ8_0:
    case DType::kMXFP4: return 32;
    case DType::kQ2_K:
    case DType::kQ4_K:
    case DType::kQ6_K:
    case DType::kIQ2_XXS: return 256;
  }
  TANDEM_UNREACHABLE();
}

/// Bytes of one such group.
constexpr int block_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32: return 4;
    case DType::kF16:
    case DType::kBF16: return 2;
    case DType::kQ8_0: return 34;
    case DType::kQ2_K: return 84;
    case DType::kQ4_K: return 144;
    case DType::kQ6_K: return 210;
    case DType::kIQ2_XXS: return 66;
    case DType::kMXFP4: return 17;
  }
  TANDEM_UNREACHABLE();
}

/// Bytes of a row of `cols` values. Limits: cols >= 0, a multiple of block_values(dtype), and
/// already bounded (a checked tensor's size): for sizes from outside use tensor_bytes().
constexpr int64_t row_bytes(DType dtype, int64_t cols) {
  TANDEM_CHECK(cols >= 0 && cols % block_values(dtype) == 0);
  return cols / block_values(dtype) * block_bytes(dtype);
}

/// Bytes of a tensor with the sizes `dims`, dims[0] contiguous. Safe for any input.
/// Errors: kInvalidArgument if a size is zero, dims[0] does not hold whole blocks, or the size
/// overflows 63 bits.
Result<uint64_t> tensor_bytes(DType dtype, std::span<const uint64_t> dims);

}  // namespace tandem
