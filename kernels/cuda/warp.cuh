#pragma once

#include <cuda_runtime.h>

namespace tandem::cuda {

inline constexpr int kWarpLanes = 32;

// Reductions in a fixed order: the same inputs give the same bits.

/// The sum over a warp, in every lane.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffU, value, offset);
  }
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, offset));
  }
  return value;
}

/// The sum over a CTA of kNumThreads threads, in every thread. Holds two barriers.
template <int kNumThreads>
__device__ __forceinline__ float cta_sum(float value) {
  static_assert(kNumThreads % kWarpLanes == 0 && kNumThreads <= 1024);
  constexpr int kNumWarps = kNumThreads / kWarpLanes;
  __shared__ float partial[kNumWarps];
  value = warp_sum(value);
  __syncthreads();  // the previous use of `partial` is over
  if (threadIdx.x % kWarpLanes == 0) partial[threadIdx.x / kWarpLanes] = value;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kNumWarps; ++i) sum += partial[i];
  return sum;
}

template <int kNumThreads>
__device__ __forceinline__ float cta_max(float value) {
  static_assert(kNumThreads % kWarpLanes == 0 && kNumThreads <= 1024);
  constexpr int kNumWarps = kNumThreads / kWarpLanes;
  __shared__ float partial[kNumWarps];
  value = warp_max(value);
  __syncthreads();
  if (threadIdx.x % kWarpLanes == 0) partial[threadIdx.x / kWarpLanes] = value;
  __syncthreads();
  float maximum = partial[0];
#pragma unroll
  for (int i = 1; i < kNumWarps; ++i) maximum = fmaxf(maximum, partial[i]);
  return maximum;
}

}  // namespace tandem::cuda
