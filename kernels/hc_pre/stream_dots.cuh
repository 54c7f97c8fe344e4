#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/views.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/regime.h"
#include "kernels/cuda/warp.cuh"
#include "kernels/hc_pre/stream_tiles.cuh"
#include "kernels/linear/dequantize.cuh"

namespace tandem::cuda {

// The products fn x over the long stream row, split over slices of columns so that many CTAs share
// a row, and their sum. hc_pre and head share them.

inline constexpr int kSliceCols = 256;
inline constexpr int kDotThreads = 256;
inline constexpr int kDotRowsPerCta = 16;
inline constexpr int kProductsPerWarp = 4;  // more are taken in further rounds

struct StreamDotArgs {
  const float* x;
  int64_t x_stride;
  const int32_t* row_ids;  // row i of the products is row row_ids[i] of x; null: row i
  WeightView fn;
  float* partial;  // [num_rows][fn.rows + 1][num_slices]; the last is the sum of squares
  int num_rows;
  int num_slices;
  int stream_dim;  // > 0: a slice is 64 columns of each of four streams of this many
};

/// What hc_post does to the streams before the products.
struct StreamUpdate {
  float* streams;  // StreamDotArgs::x
  ConstRows branch;
  ConstRows mix;
};

/// The stream_dim of StreamDotArgs: of four streams each slice has its part of every one, so that a
/// CTA can replace what it reads.
constexpr int sliced_stream_dim(int64_t num_streams, int64_t stream_dim) {
  return num_streams == 4 && stream_dim % (kSliceCols / 4) == 0 ? static_cast<int>(stream_dim) : 0;
}

/// The first of the eight columns of a lane.
__device__ __forceinline__ int64_t lane_column(const StreamDotArgs& args, int lane) {
  if (args.stream_dim == 0) return static_cast<int64_t>(blockIdx.x) * kSliceCols + lane * 8;
  return static_cast<int64_t>(lane / 8) * args.stream_dim + blockIdx.x * (kSliceCols / 4) +
         lane % 8 * 8;
}

__device__ __forceinline__ void load_eight(const float* from, int64_t left, float (&x)[8]) {
  if (left >= 8 && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
    const float4 low = reinterpret_cast<const float4*>(from)[0];
    const float4 high = reinterpret_cast<const float4*>(from)[1];
    x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
    x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = i < left ? from[i] : 0.0f;
}

// Replaces this CTA's columns of row t as hc_post does, and keeps them in `slice`.
__device__ __forceinline__ void update_slice(
    const StreamDotArgs& args, const StreamUpdate& update, int t, float* slice) {
  constexpr int kStreams = 4;
  constexpr int kDims = kSliceCols / kStreams;
  static_assert(kDotThreads == kSliceCols);
  const int stream = threadIdx.x / kDims;
  const int64_t dim = blockIdx.x * kDims + threadIdx.x % kDims;
  float* x = update.streams + t * args.x_stride + dim;
  const float* mix = update.mix.row(t);
  float sum = __fmul_rn(mix[stream], update.branch.row(t)[dim]);
#pragma unroll
  for (int j = 0; j < kStreams; ++j) {
    sum = __fmaf_rn(mix[kStreams + kStreams * j + stream], x[j * args.stream_dim], sum);
  }
  slice[threadIdx.x] = sum;
  __syncthreads();  // every thread has read the old values
  x[stream * args.stream_dim] = sum;
}

// Grid: x over slices, y over groups of kDotRowsPerCta rows. A warp takes every eighth product, a
// lane eight columns of it. The weights do not depend on the kernel before this one and are read
// before it has ended.
template <bool kUpdates>
__global__ __launch_bounds__(kDotThreads) void stream_dots_kernel(
    const __grid_constant__ StreamDotArgs args, const __grid_constant__ StreamUpdate update) {
  constexpr int kNumWarps = kDotThreads / kWarpLanes;
  __shared__ float slices[kUpdates ? kDotRowsPerCta : 1][kUpdates ? kSliceCols : 1];
  const int warp = threadIdx.x / kWarpLanes;
  const int lane = threadIdx.x % kWarpLanes;
  const auto num_products = static_cast<int>(args.fn.rows) + 1;
  const int64_t k = lane_column(args, lane);
  const bool inside = k < args.fn.cols;
  const int first = static_cast<int>(blockIdx.y) * kDotRowsPerCta;
  const int end = min(first + kDotRowsPerCta, args.num_rows);
  bool has_waited = false;
  for (int round = warp; round < num_products || !has_waited;
       round += kNumWarps * kProductsPerWarp) {
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
    if (!has_waited) {
      has_waited = true;
      pdl_wait();
      pdl_launch_dependents();
      if constexpr (kUpdates) {
        for (int t = first; t < end; ++t) update_slice(args, update, t, slices[t - first]);
        __syncthreads();
      }
    }
    for (int t = first; t < end; ++t) {
      float x[8];
      if constexpr (kUpdates) {
        load_eight(slices[t - first] + lane * 8, 8, x);
      } else {
        const int64_t row = args.row_ids == nullptr ? t : args.row_ids[t];
        load_eight(args.x + row * args.x_stride + k, args.fn.cols - k, x);
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
}

inline constexpr int kLongSliceCols = 2048;
inline constexpr int kLongRows = 8;  // of a CTA

// The same for many rows: longer slices and rows in groups, so that adding lanes up is rare.
// Grid: x over slices of kLongSliceCols, y over groups of kLongRows rows.
static __global__ __launch_bounds__(kDotThreads) void long_stream_dots_kernel(
    const __grid_constant__ StreamDotArgs args) {
  constexpr int kNumWarps = kDotThreads / kWarpLanes;
  const int warp = threadIdx.x / kWarpLanes;
  const int lane = threadIdx.x % kWarpLanes;
  const auto num_products = static_cast<int>(args.fn.rows) + 1;
  const int first = static_cast<int>(blockIdx.y) * kLongRows;
  pdl_wait();
  pdl_launch_dependents();
  for (int round = warp; round < num_products; round += kNumWarps * kProductsPerWarp) {
    float acc[kLongRows][kProductsPerWarp] = {};
    for (int part = 0; part < kLongSliceCols / kSliceCols; ++part) {
      const int64_t k =
          static_cast<int64_t>(blockIdx.x) * kLongSliceCols + part * kSliceCols + lane * 8;
      if (k >= args.fn.cols) break;
      float w[kProductsPerWarp][8] = {};
#pragma unroll
      for (int p = 0; p < kProductsPerWarp; ++p) {
        const int product = round + p * kNumWarps;
        if (product >= args.fn.rows) continue;
        if (args.fn.dtype == DType::kF16) {
          dequantize8<DType::kF16>(args.fn.row(product), args.fn.cols, k, w[p]);
        } else {
          dequantize8_any(args.fn.dtype, args.fn.row(product), args.fn.cols, k, w[p]);
        }
      }
#pragma unroll
      for (int t = 0; t < kLongRows; ++t) {
        if (first + t >= args.num_rows) break;
        const int64_t row = args.row_ids == nullptr ? first + t : args.row_ids[first + t];
        float x[8];
        load_eight(args.x + row * args.x_stride + k, args.fn.cols - k, x);
#pragma unroll
        for (int p = 0; p < kProductsPerWarp; ++p) {
          const bool squares = round + p * kNumWarps == num_products - 1;
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            acc[t][p] = __fmaf_rn(squares ? x[i] : w[p][i], x[i], acc[t][p]);
          }
        }
      }
    }
#pragma unroll
    for (int t = 0; t < kLongRows; ++t) {
#pragma unroll
      for (int p = 0; p < kProductsPerWarp; ++p) {
        const int product = round + p * kNumWarps;
        const float sum = warp_sum(acc[t][p]);
        if (lane == 0 && product < num_products && first + t < args.num_rows) {
          args.partial
              [(static_cast<int64_t>(first + t) * num_products + product) * args.num_slices +
               blockIdx.x] = sum;
        }
      }
    }
  }
}

/// Slices of the products.
constexpr int num_slices_for(const Exec& exec, int64_t cols) {
  const int64_t of_one = is_prefill(exec) ? kLongSliceCols : kSliceCols;
  return static_cast<int>((cols + of_one - 1) / of_one);
}

/// Queues the products, after `update` if it has streams.
inline Status launch_stream_dots(
    const Exec& exec, const char* what, const StreamDotArgs& args, const StreamUpdate& update) {
  static_assert(kTileCols == kLongSliceCols);
  const bool aligned = reinterpret_cast<uintptr_t>(args.x) % 16 == 0 && args.x_stride % 4 == 0;
  if (is_prefill(exec) && stream_tiles_take(args.fn) && aligned) {
    const dim3 tiles(
        static_cast<unsigned>(args.num_slices),
        static_cast<unsigned>((args.num_rows + kTileStreamRows - 1) / kTileStreamRows));
    const StreamTileArgs tile_args = {args.x,       args.x_stride, args.row_ids,   args.fn,
                                      args.partial, args.num_rows, args.num_slices};
    return launch(what, stream_tiles_kernel, tiles, kTileThreads, 0, exec.stream, tile_args);
  }
  if (is_prefill(exec)) {
    const dim3 long_grid(
        static_cast<unsigned>(args.num_slices),
        static_cast<unsigned>((args.num_rows + kLongRows - 1) / kLongRows));
    return launch(what, long_stream_dots_kernel, long_grid, kDotThreads, 0, exec.stream, args);
  }
  const dim3 grid(
      static_cast<unsigned>(args.num_slices),
      static_cast<unsigned>((args.num_rows + kDotRowsPerCta - 1) / kDotRowsPerCta));
  const auto kernel =
      update.streams != nullptr ? stream_dots_kernel<true> : stream_dots_kernel<false>;
  return launch(what, kernel, grid, kDotThreads, 0, exec.stream, args, update);
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
  const float r = approximate_reciprocal(x);
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
