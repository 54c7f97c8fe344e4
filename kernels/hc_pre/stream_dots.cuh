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

// Grid: x over slices, y over groups of kDotRowsPerCta rows. A warp takes every eighth fn row; a
// lane eight columns of it.
static __global__ __launch_bounds__(kDotThreads) void stream_dots_kernel(
    const __grid_constant__ StreamDotArgs args) {
  const int warp = threadIdx.x / kWarpLanes;
  const int lane = threadIdx.x % kWarpLanes;
  const auto num_products = static_cast<int>(args.fn.rows) + 1;
  const int64_t k = static_cast<int64_t>(blockIdx.x) * kSliceCols + lane * 8;
  const bool inside = k < args.fn.cols;
  pdl_wait();
  pdl_launch_dependents();
  const int first = static_cast<int>(blockIdx.y) * kDotRowsPerCta;
  const int end = min(first + kDotRowsPerCta, args.num_rows);
  for (int product = warp; product < num_products; product += kDotThreads / kWarpLanes) {
    const bool squares = product == num_products - 1;
    float w[8] = {};
    if (!squares && inside) {
      dequantize8_any(args.fn.dtype, args.fn.row(product), args.fn.cols, k, w);
    }
    for (int t = first; t < end; ++t) {
      const int64_t row = args.row_ids == nullptr ? t : args.row_ids[t];
      const float* x = args.x + row * args.x_stride + k;
      float sum = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float value = k + i < args.fn.cols ? x[i] : 0.0f;
        sum = __fmaf_rn(squares ? value : w[i], value, sum);
      }
      sum = warp_sum(sum);
      if (lane == 0) {
        args.partial
            [(static_cast<int64_t>(t) * num_products + product) * args.num_slices + blockIdx.x] =
            sum;
      }
    }
  }
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

/// out = rms_norm(sum_j pre[j] x_j, norm) by the whole CTA; out holds the sum in between.
template <int kNumThreads>
__device__ __forceinline__ void collapse_streams(
    const float* x, const float* pre, int num_streams, VectorView norm, float rms_eps, float* out) {
  const auto hidden_dim = static_cast<int>(norm.size);
  float sum_squares = 0;
  for (int i = threadIdx.x; i < hidden_dim; i += kNumThreads) {
    float sum = 0;
    for (int j = 0; j < num_streams; ++j) sum = __fmaf_rn(pre[j], x[j * hidden_dim + i], sum);
    out[i] = sum;
    sum_squares = __fmaf_rn(sum, sum, sum_squares);
  }
  const float mean_square = cta_sum<kNumThreads>(sum_squares) / static_cast<float>(hidden_dim);
  const float scale = 1.0f / sqrtf(mean_square + rms_eps);
  for (int i = threadIdx.x; i < hidden_dim; i += kNumThreads) out[i] *= scale * norm.data[i];
}

}  // namespace tandem::cuda
