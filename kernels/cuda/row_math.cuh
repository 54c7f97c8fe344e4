#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "kernels/core/views.h"
#include "kernels/cuda/warp.cuh"
#include "kernels/math/row_rounding.h"

namespace tandem::cuda {

// The arithmetic of kernels/math/reference_math.h for a row whose values are spread over threads.

/// The sum over a CTA of whole warps, whose number is known at run time only. `scratch`: 33 floats
/// of shared memory that nothing else uses until the next barrier after the call.
__device__ __forceinline__ float cta_sum_dynamic(float value, float* scratch) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    const float part = threadIdx.x < blockDim.x / 32 ? scratch[threadIdx.x] : 0.0f;
    const float total = warp_sum(part);
    if (threadIdx.x == 0) scratch[32] = total;
  }
  __syncthreads();
  return scratch[32];
}

/// One pair of values rotated by `angle` radians.
__device__ __forceinline__ float2 rotate_pair(float even, float odd, float angle) {
  float sine = 0;
  float cosine = 0;
  sincosf(angle, &sine, &cosine);
  return {even * cosine - odd * sine, even * sine + odd * cosine};
}

/// One value of a group whose largest magnitude is `largest`.
__device__ __forceinline__ float round_fp8(float value, float largest) {
  const float scale = exp2_int(ceil_log2(fmaxf(largest, 1e-4f) * (1.0f / 448.0f)));
  return round_e4m3(fminf(fmaxf(value / scale, -448.0f), 448.0f)) * scale;
}

__device__ __forceinline__ float round_fp4(float value, float largest) {
  const int exponent = ceil_log2(fmaxf(largest, 6.0f * 0x1p-126f) * (1.0f / 6.0f));
  const float scale = exp2_int(max(-126, exponent));
  return round_e2m1(fminf(fmaxf(value / scale, -6.0f), 6.0f)) * scale;
}

/// Value `idx` of a slab row of F32, F16 or BF16.
__device__ __forceinline__ float load_value(DType dtype, const std::byte* row, int64_t idx) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(row)[idx];
  if (dtype == DType::kF16) return __half2float(reinterpret_cast<const __half*>(row)[idx]);
  return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(row)[idx]);
}

__device__ __forceinline__ void store_value(DType dtype, std::byte* row, int64_t idx, float value) {
  if (dtype == DType::kF32) {
    reinterpret_cast<float*>(row)[idx] = value;
  } else if (dtype == DType::kF16) {
    reinterpret_cast<__half*>(row)[idx] = __float2half_rn(value);
  } else {
    reinterpret_cast<__nv_bfloat16*>(row)[idx] = __float2bfloat16_rn(value);
  }
}

}  // namespace tandem::cuda
