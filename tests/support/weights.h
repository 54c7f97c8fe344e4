#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/core/views.h"
#include "tests/support/tensor.h"

namespace tandem::test {

/// A weight in file blocks in host memory, with the values that the blocks hold.
struct HostWeight {
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<std::byte> bytes;
  Tensor64 values;

  WeightView view() const {
    return {bytes.data(), dtype, rows, cols, row_bytes(dtype, cols), WeightLayout::kBlocks};
  }
};

/// Stores `values` as `dtype`; `values` of the result are what the blocks then hold.
HostWeight make_weight(DType dtype, const Tensor& values);

/// Random blocks: normal values of standard deviation `deviation`, stored as `dtype` (IQ2_XXS:
/// random bits, with values of about that size).
HostWeight random_weight(
    DType dtype, int64_t rows, int64_t cols, uint64_t seed, float deviation = 1.0f);

/// The types that linear() takes.
inline constexpr DType kWeightDTypes[] = {DType::kF32,  DType::kF16,     DType::kBF16,
                                          DType::kQ8_0, DType::kQ2_K,    DType::kQ4_K,
                                          DType::kQ6_K, DType::kIQ2_XXS, DType::kMXFP4};

}  // namespace tandem::test
