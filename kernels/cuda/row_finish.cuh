#pragma once

#include <cuda_runtime.h>

#include "kernels/core/views.h"
#include "kernels/cuda/row_math.cuh"
#include "model/formats/row_rounding.h"

namespace tandem::cuda {

inline constexpr int kFinishRowMax = 1024;

/// Rotates by pos and rounds a row of row_dim values, of which thread i < row_dim holds value i,
/// and returns this thread's. Every thread of a CTA of whole warps takes part.
///
/// Limits: row_dim <= kFinishRowMax and even; kFp8 needs groups of 64 before the tail, kHadamardFp4
///         a power of two of at least 32.
/// shared: [kFinishRowMax], free again after the caller's next barrier.
__device__ __forceinline__ float finish_row_value(
    float value, int row_dim, const RotaryView& rotary, int64_t pos, RowRounding rounding,
    float* shared) {
  const int i = threadIdx.x;
  const int tail = row_dim - static_cast<int>(rotary.dim);
  const float other = __shfl_xor_sync(0xffffffff, value, 1);
  if (i >= tail && i < row_dim) {
    const bool odd = (i - tail) % 2 != 0;
    const float angle = static_cast<float>(pos) * rotary.frequencies[(i - tail) / 2];
    const float2 pair = rotate_pair(odd ? other : value, odd ? value : other, angle);
    value = odd ? pair.y : pair.x;
  }
  switch (rounding) {
    case RowRounding::kNone: break;
    case RowRounding::kFp8: {
      const float largest = warp_max(fabsf(value));
      if (i % 32 == 0) shared[i / 32] = largest;
      __syncthreads();
      const int first = i / 64 * 2;  // a group is two warps
      if (i < tail) value = round_fp8(value, fmaxf(shared[first], shared[first + 1]));
      break;
    }
    case RowRounding::kHadamardFp4: {
      for (int stride = 1; stride < 32; stride *= 2) {
        const float partner = __shfl_xor_sync(0xffffffff, value, stride);
        value = (i & stride) == 0 ? value + partner : partner - value;
      }
      for (int stride = 32; stride < row_dim; stride *= 2) {
        __syncthreads();
        shared[i] = value;
        __syncthreads();
        const float partner = shared[i ^ stride];
        value = (i & stride) == 0 ? value + partner : partner - value;
      }
      value *= 1.0f / sqrtf(static_cast<float>(row_dim));
      value = round_fp4(value, warp_max(fabsf(value)));
      break;
    }
  }
  return value;
}

}  // namespace tandem::cuda
