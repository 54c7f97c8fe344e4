#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/ptx.cuh"
#include "kernels/linear/packed_rows.cuh"

namespace tandem::cuda {

// Dots of 16 F16 weight rows with up to 8 * kCols8 split activation rows, by one warp; lanes as in
// tile_dot.cuh, but with a column of the matrix instruction for each activation row.

/// The activations of products with F16 weights: eight rows for each mma.
template <int kCols8>
struct SplitLane {
  const uint16_t* high[kCols8];  // at column 8 * pair of its row
  const uint16_t* low[kCols8];
};

template <int kCols8>
__device__ __forceinline__ SplitLane<kCols8> split_lane(const SplitRows& rows, int num_rows) {
  const int group = threadIdx.x % kWarpLanes / 4;
  const int pair = threadIdx.x % 4;
  SplitLane<kCols8> lane;
#pragma unroll
  for (int c = 0; c < kCols8; ++c) {
    const int row = min(8 * c + group, num_rows - 1);
    lane.high[c] = rows.high + row * rows.stride + 8 * pair;
    lane.low[c] = rows.low + row * rows.stride + 8 * pair;
  }
  return lane;
}

/// acc += one block of 32 columns; acc[c] is laid out as the matrix instruction does, and the
/// caller multiplies by the rows' scales.
template <int kCols8>
__device__ __forceinline__ void add_split(
    float (&acc)[kCols8][4], const SplitLane<kCols8>& x, int block, const uint4& low,
    const uint4& high) {
#pragma unroll
  for (int c = 0; c < kCols8; ++c) {
    const uint4 main = *reinterpret_cast<const uint4*>(x.high[c] + block * 32);
    const uint4 rest = *reinterpret_cast<const uint4*>(x.low[c] + block * 32);
    mma_f16_k16(acc[c], low.x, high.x, low.y, high.y, main.x, main.y);
    mma_f16_k16(acc[c], low.z, high.z, low.w, high.w, main.z, main.w);
    mma_f16_k16(acc[c], low.x, high.x, low.y, high.y, rest.x, rest.y);
    mma_f16_k16(acc[c], low.z, high.z, low.w, high.w, rest.z, rest.w);
  }
}

}  // namespace tandem::cuda
