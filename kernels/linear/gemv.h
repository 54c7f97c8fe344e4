#pragma once

#include <span>

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/views.h"

namespace tandem::cuda {

/// One product of a batch: out[t, i] = sum_j weight[i, j] * x[t, j].
struct GemvPart {
  ConstRows x;
  WeightView weight;
  Rows out;
};

inline constexpr size_t kGemvPartsMax = 16;

/// Products of few rows on the GPU, bound by the bandwidth of the weights. Parts of one weight type
/// run in one launch; the rows of up to 16 x share one pass over the weights, more rows take more
/// passes. A row's result does not depend on the other rows.
///
/// Types:  kFast rounds x to 16 bits in blocks of 256 for Q8_0, Q2_K, Q4_K, IQ2_XXS and MXFP4, and
///         keeps float32 to about 22 bits for F16; other types, activation rows that do not start
///         on 16 bytes, and kExact multiply in float32.
/// Limits: 1 <= parts.size() <= kGemvPartsMax; all parts have the same number of rows.
/// Errors: kInvalidArgument for a broken limit; kInternal if a launch fails.
Status gemv(const Exec& exec, std::span<const GemvPart> parts);

}  // namespace tandem::cuda
