#pragma once

#include "tests/support/backend.h"
#include "tests/support/tensor.h"
#include "tests/support/weights.h"

namespace tandem::test {

inline constexpr double kF32Unit = 0x1p-24;  // unit roundoff of float32

/// How far each element of `weight` times x [n, k] may be from its exact value on `backend`:
///  - k float32 roundings of the sum, relative to sum_j |w_j x_j|;
///  - kFast, quantised weights: x rounded to int8 over each block of the weight, so off by at most
///    1/254 of the block's largest value (a little more for the rounding of the scale itself);
///  - kFast, any weights: x and the dequantised weight each rounded to bf16, 2^-8 of the value.
Tensor64 linear_bound(const Backend& backend, const Tensor64& x, const HostWeight& weight);

/// Relative Euclidean error of one row of a chain of `num_linears` products on `backend`, for
/// near_rows. `terms` is the length of the longest sum. Exact: float32 roundings that add up as
/// random ones do, with a margin of 8. Fast: rounding normal values to int8 over a block whose
/// largest is 3 standard deviations leaves noise of 3 / (127 sqrt(12)) = 0.7 %, bf16 less
/// (2^-8 / sqrt(3)); each product adds its share, with a margin of 3.
double chain_bound(const Backend& backend, int num_linears, int64_t terms);

}  // namespace tandem::test
