#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/views.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/linear/dequantize.cuh"

namespace tandem::cuda {

// The products fn x over the long stream row, split over slices of columns so that many CTAs share
// a row, and their sum. hc_pre and head share them.

inline constexpr int kSliceCols = 256;
inline constexpr int kDotThreads = 256;
inline constexpr int kDotRowsPerCta = 16;

struct StreamDotArgs {
  const float* x;
  int64_t x_stride;
  const int32_t* row_ids;  // row i of the products is row row_ids[i] of x; null: row i
  WeightView fn;
  float* partial;  // [num_rows][fn.rows + 1][num_slices]; the last is the sum of squares
  int num_rows;
  int num_slices;
};

constexpr int num_slices_for(int64_t cols) {
  return static_cast<int>((cols + kSliceCols - 1) / kSliceCols);
}

inline constexpr int kProductsPerWarp = 4;  // more are taken in further rounds

// Grid: x over slices, y over groups of kDotRowsPerCta rows. A warp takes every eighth product, a
// lane eight columns of it. The weights do not depend on the kernel before this one and are read
// before it has ended.
static __global__ __launch_bounds__(kDotThreads) void stream_dots_kernel(
    const __grid_constant__ StreamDotArgs args) {
  constexpr int kNumWarps = kDotThreads / kWarpLanes;
  const int warp = threadIdx.x / kWarpLanes;
  const int lane = threadIdx.x % kWarpLanes;
  const auto num_products = static_cast<int>(args.fn.rows) + 1;
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kSliceCols + lane * 8;
  const bool inside = k < args.fn.cols;
  const int first = static_cast<int>(blockIdx.y) * kDotRowsPerCta;
  const int end = min(first + kDotRowsPerCta, args.num_rows);
  for (int round = warp; round < num_products; round += kNumWarps * kProductsPerWarp) {
    float w[kProductsPerWarp][8] = {};
#pragma unroll
    for (int p = 0; p < kProductsPerWarp; ++p) {
      const int product = round + p * kNumWarps;
      if (product >= args.fn.rows || !inside) continue;
      if (args.fn.dtype == DType::kF16) {
        dequantize8<DType::kF16>(args.fn.row(product), args.fn.cols, k, w[p]);
      } else {
        dequantize8_any(args.fn.dtype, args.fn.row(product), args.fn.cols, k, w[p]);
      }
    }
    if (round == warp) {
      pdl_wait();
      pdl_launch_dependents();
    }
    for (int t = first; t < end; ++t) {
      const int64_t row = args.row_ids == nullptr ? t : args.row_ids[t];
      const float* from = args.x + row * args.x_stride + k;
      float x[8];
      if (k + 8 <= args.fn.cols && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
        const float4 low = reinterpret_cast<const float4*>(from)[0];
        const float4 high = reinterpret_cast<const float4*>(from)[1];
        x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
        x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = k + i < args.fn.cols ? from[i] : 0.0f;
      }
#pragma unroll
      for (int p = 0; p < kProductsPerWarp; ++p) {
        const int product = round + p * kNumWarps;
        if (product >= num_products) break;
        const bool squares = product == num_products - 1;
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) sum = __fmaf_rn(squares ? x[i] : w[p][i], x[i], sum);
        sum = warp_sum(sum);
        if (lane == 0) {
          args.partial
              [(static_cast<int64_t>(t) * num_products + product) * args.num_slices + blockIdx.x] =
              sum;
        }
      }
    }
  }
  if (warp >= num_products) pdl_wait();
}

/// The sum of one product's slices, in every lane.
__device__ __forceinline__ float sum_slices(const float* partial, int num_slices) {
  float sum = 0;
  for (int i = threadIdx.x % kWarpLanes; i < num_slices; i += kWarpLanes) sum += partial[i];
  return warp_sum(sum);
}

__device__ __forceinline__ float sigmoid(float z) {
  return 1.0f / (1.0f + expf(-z));
}

/// 1 / x to the last bit or two, without the branches of a division. Limits: x normal.
__device__ __forceinline__ float reciprocal(float x) {
  float r = 0;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return __fmaf_rn(r, __fmaf_rn(-x, r, 1.0f), r);
}

/// The streams of a row and the norm, read by the threads of a CTA before the mixing coefficients
/// are known. Of a longer row the rest is read when it is needed.
template <int kStreams, int kNumThreads>
struct StreamRegisters {
  static constexpr int kKept = 8;  // values of each stream
  float x[kKept][kStreams];
  float norm[kKept];

  /// Weights, so that the kernel before need not have ended.
  __device__ __forceinline__ void load_norm(VectorView weight) {
#pragma unroll
    for (int n = 0; n < kKept; ++n) {
      const int i = threadIdx.x + n * kNumThreads;
      norm[n] = i < weight.size ? weight.data[i] : 0.0f;
    }
  }
  __device__ __forceinline__ void load_streams(const float* row, int hidden_dim) {
#pragma unroll
    for (int n = 0; n < kKept; ++n) {
      const int i = threadIdx.x + n * kNumThreads;
#pragma unroll
      for (int j = 0; j < kStreams; ++j) x[n][j] = i < hidden_dim ? row[j * hidden_dim + i] : 0.0f;
    }
  }
};

/// out = rms_norm(sum_j pre[j] x_j, norm) by the whole CTA; the part beyond the registers passes
/// through out.
template <int kStreams, int kNumThreads>
__device__ __forceinline__ void collapse_streams(
    const StreamRegisters<kStreams, kNumThreads>& kept, const float* x,
    const float (&pre)[kStreams], VectorView norm, float rms_eps, float* out) {
  constexpr int kKept = StreamRegisters<kStreams, kNumThreads>::kKept;
  const auto hidden_dim = static_cast<int>(norm.size);
  float mixed[kKept];
  float sum_squares = 0;
#pragma unroll
  for (int n = 0; n < kKept; ++n) {
    mixed[n] = 0;
#pragma unroll
    for (int j = 0; j < kStreams; ++j) mixed[n] = __fmaf_rn(pre[j], kept.x[n][j], mixed[n]);
    sum_squares = __fmaf_rn(mixed[n], mixed[n], sum_squares);
  }
  for (int i = threadIdx.x + kKept * kNumThreads; i < hidden_dim; i += kNumThreads) {
    float sum = 0;
    for (int j = 0; j < kStreams; ++j) sum = __fmaf_rn(pre[j], x[j * hidden_dim + i], sum);
    out[i] = sum;
    sum_squares = __fmaf_rn(sum, sum, sum_squares);
  }
  const float mean_square = cta_sum<kNumThreads>(sum_squares) / static_cast<float>(hidden_dim);
  const float scale = 1.0f / sqrtf(mean_square + rms_eps);
#pragma unroll
  for (int n = 0; n < kKept; ++n) {
    const int i = threadIdx.x + n * kNumThreads;
    if (i < hidden_dim) out[i] = mixed[n] * (scale * kept.norm[n]);
  }
  for (int i = threadIdx.x + kKept * kNumThreads; i < hidden_dim; i += kNumThreads) {
    out[i] *= scale * norm.data[i];
  }
}

}  // namespace tandem::cuda
