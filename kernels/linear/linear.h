#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/views.h"

namespace tandem {

struct LinearArgs {
  ConstRows x;        // [n, k]
  WeightView weight;  // [m, k]
  Rows out;           // [n, m]; no overlap with x
};

/// out[t, i] = sum_j weight[i, j] * x[t, j]
///
/// Types:  weight of any DType but kI32. kExact multiplies in f32; kFast may round x to int8 per
///         quantisation block of the weight, or to bf16.
/// Limits: n <= kChunkTokensMax; k a multiple of the weight's block.
/// Errors: kInvalidArgument, with nothing written, if the above is broken.
/// Cost:   max(weight bytes / bandwidth, 2 n m k / peak).
Status linear(const Exec& exec, const LinearArgs& args);

}  // namespace tandem
