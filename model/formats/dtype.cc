#include "model/formats/dtype.h"

#include <limits>

namespace tandem {

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "F32";
    case DType::kF16: return "F16";
    case DType::kBF16: return "BF16";
    case DType::kQ8_0: return "Q8_0";
    case DType::kQ2_K: return "Q2_K";
    case DType::kQ4_K: return "Q4_K";
    case DType::kQ6_K: return "Q6_K";
    case DType::kIQ2_XXS: return "IQ2_XXS";
    case DType::kMXFP4: return "MXFP4";
    case DType::kI32: return "I32";
  }
  TANDEM_UNREACHABLE();
}

uint32_t ggml_id(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 0;
    case DType::kF16: return 1;
    case DType::kBF16: return 30;
    case DType::kQ8_0: return 8;
    case DType::kQ2_K: return 10;
    case DType::kQ4_K: return 12;
    case DType::kQ6_K: return 14;
    case DType::kIQ2_XXS: return 16;
    case DType::kMXFP4: return 39;
    case DType::kI32: return 26;
  }
  TANDEM_UNREACHABLE();
}

std::optional<DType> from_ggml_id(uint32_t id) {
  for (const DType dtype : kAllDTypes) {
    if (ggml_id(dtype) == id) return dtype;
  }
  return std::nullopt;
}

Result<uint64_t> tensor_bytes(DType dtype, std::span<const uint64_t> dims) {
  // Element counts and byte offsets are kept in int64_t further on.
  constexpr uint64_t kBytesMax = std::numeric_limits<int64_t>::max();
  TANDEM_REQUIRE(!dims.empty(), "a tensor needs at least one dimension");
  const auto values = static_cast<uint64_t>(block_values(dtype));
  uint64_t total = 1;  // bytes
  uint64_t num_values = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    TANDEM_REQUIRE(dims[i] != 0, str_cat("dimension ", i, " is zero"));
    TANDEM_REQUIRE(dims[i] <= kBytesMax / num_values, "size overflows");
    num_values *= dims[i];
    uint64_t factor = dims[i];
    if (i == 0) {
      TANDEM_REQUIRE(
          dims[0] % values == 0, str_cat(
                                     "a row of ", dims[0], " values does not hold whole ",
                                     dtype_name(dtype), " blocks of ", values));
      factor = dims[0] / values;
      total = static_cast<uint64_t>(block_bytes(dtype));
    }
    TANDEM_REQUIRE(factor <= kBytesMax / total, "size overflows");
    total *= factor;
  }
  return total;
}

}  // namespace tandem
