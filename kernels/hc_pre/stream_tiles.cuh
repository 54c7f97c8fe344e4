#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/views.h"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp.cuh"

namespace tandem::cuda {

// The products fn x of many rows on the matrix units. x keeps 22 bits: the two halves of a value,
// of 11 bits, are multiplied one after the other; a weight in F16 is exact as it is. Rows are
// the `a` side, weights the `b` side. Within a block of 32 columns a lane = 4 * group + pair takes
// columns 8 pair ... 8 pair + 7 of the rows `group` and `group + 8`, and of weight row `group` of
// each eight; step s of four multiplies columns 8 pair + s and 8 pair + 4 + s.

inline constexpr int kTileWarps = 8;
inline constexpr int kTileThreads = kTileWarps * kWarpLanes;
inline constexpr int kTileStreamRows = 32;                    // of a CTA; two fragments
inline constexpr int kTileWarpCols = 256;                     // of a warp
inline constexpr int kTileCols = kTileWarps * kTileWarpCols;  // of a CTA: a slice
inline constexpr int kTileProducts = 24;                      // at most

struct StreamTileArgs {
  const float* x;
  int64_t x_stride;
  const int32_t* row_ids;  // row i of the products is row row_ids[i] of x; null: row i
  WeightView fn;           // F16, at most kTileProducts rows
  float* partial;          // [num_rows][fn.rows + 1][num_slices]; the last is the sum of squares
  int num_rows;
  int num_slices;
};

constexpr bool stream_tiles_take(const WeightView& fn) {
  return fn.dtype == DType::kF16 && fn.rows <= kTileProducts && fn.cols % kTileCols == 0;
}

/// The sums of a warp over its columns: rows of two fragments, products in eights.
struct StreamTile {
  float dots[2][kTileProducts / 8][4] = {};
  float squares[2][2] = {};  // fragment, half; of this lane's columns

  __device__ __forceinline__ void add(
      const float (&x)[2][2][8], const uint4 (&weights)[kTileProducts / 8]) {
#pragma unroll
    for (int f = 0; f < 2; ++f) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          squares[f][half] = __fmaf_rn(x[f][half][i], x[f][half][i], squares[f][half]);
        }
      }
    }
#pragma unroll
    for (int n = 0; n < kTileProducts / 8; ++n) {
      const uint32_t words[4] = {weights[n].x, weights[n].y, weights[n].z, weights[n].w};
      uint32_t w[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        w[i] = __float_as_uint(half_bits_to_float((words[i / 2] >> (16 * (i % 2))) & 0xffffU));
      }
#pragma unroll
      for (int f = 0; f < 2; ++f) {
#pragma unroll
        for (int s = 0; s < 4; ++s) {
          const float v[4] = {x[f][0][s], x[f][1][s], x[f][0][4 + s], x[f][1][4 + s]};
          uint32_t high[4];
          uint32_t low[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            high[i] = __float_as_uint(v[i]) & 0xffffe000U;
            low[i] = __float_as_uint(__fsub_rn(v[i], __uint_as_float(high[i])));
          }
          mma_tf32_k8(dots[f][n], high, w[s], w[4 + s]);
          mma_tf32_k8(dots[f][n], low, w[s], w[4 + s]);
        }
      }
    }
  }
};

// Grid: x over slices of kTileCols, y over groups of kTileStreamRows rows.
static __global__ __launch_bounds__(kTileThreads) void stream_tiles_kernel(
    const __grid_constant__ StreamTileArgs args) {
  constexpr int kSums = kTileProducts + 1;
  __shared__ float sums[kTileWarps][kTileStreamRows][kSums];
  pdl_wait();
  pdl_launch_dependents();
  const int warp = threadIdx.x / kWarpLanes;
  const int group = threadIdx.x % kWarpLanes / 4;
  const int pair = threadIdx.x % 4;
  const int first = static_cast<int>(blockIdx.y) * kTileStreamRows;
  const int64_t col =
      static_cast<int64_t>(blockIdx.x) * kTileCols + warp * kTileWarpCols + 8 * pair;
  const float* rows[2][2];
#pragma unroll
  for (int f = 0; f < 2; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int t = min(first + 16 * f + 8 * half + group, args.num_rows - 1);
      const int64_t row = args.row_ids == nullptr ? t : args.row_ids[t];
      rows[f][half] = args.x + row * args.x_stride + col;
    }
  }
  const std::byte* weights[kTileProducts / 8];
#pragma unroll
  for (int n = 0; n < kTileProducts / 8; ++n) {
    const int product = min(8 * n + group, static_cast<int>(args.fn.rows) - 1);
    weights[n] = args.fn.row(product) + col * 2;
  }

  StreamTile tile;
#pragma unroll 2
  for (int block = 0; block < kTileWarpCols / 32; ++block) {
    float x[2][2][8];
    uint4 w[kTileProducts / 8];
#pragma unroll
    for (int f = 0; f < 2; ++f) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto* from = reinterpret_cast<const float4*>(rows[f][half] + block * 32);
        const float4 low = from[0];
        const float4 high = from[1];
        x[f][half][0] = low.x, x[f][half][1] = low.y, x[f][half][2] = low.z, x[f][half][3] = low.w;
        x[f][half][4] = high.x, x[f][half][5] = high.y;
        x[f][half][6] = high.z, x[f][half][7] = high.w;
      }
    }
#pragma unroll
    for (int n = 0; n < kTileProducts / 8; ++n) {
      w[n] = *reinterpret_cast<const uint4*>(weights[n] + block * 64);
    }
    tile.add(x, w);
  }

#pragma unroll
  for (int f = 0; f < 2; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * f + 8 * half + group;
#pragma unroll
      for (int n = 0; n < kTileProducts / 8; ++n) {
        sums[warp][row][8 * n + 2 * pair] = tile.dots[f][n][2 * half];
        sums[warp][row][8 * n + 2 * pair + 1] = tile.dots[f][n][2 * half + 1];
      }
      float squares = tile.squares[f][half];
      squares += __shfl_xor_sync(0xffffffffU, squares, 1);
      squares += __shfl_xor_sync(0xffffffffU, squares, 2);
      if (pair == 0) sums[warp][row][kTileProducts] = squares;
    }
  }
  __syncthreads();
  const auto num_products = static_cast<int>(args.fn.rows) + 1;
  for (int i = threadIdx.x; i < kTileStreamRows * num_products; i += kTileThreads) {
    const int row = i / num_products;
    const int product = i % num_products;
    if (first + row >= args.num_rows) continue;
    const int column = product + 1 == num_products ? kTileProducts : product;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kTileWarps; ++w) sum += sums[w][row][column];
    args.partial
        [(static_cast<int64_t>(first + row) * num_products + product) * args.num_slices +
         blockIdx.x] = sum;
  }
}

}  // namespace tandem::cuda
