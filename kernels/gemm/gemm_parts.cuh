#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/weight_fragments.cuh"

namespace tandem::cuda {

// What the product kernels share: parameters, the choice of a tile, the rows of a thread and the
// store of results. gemm_kernel.cuh runs on every chip, gemm_kernel_sm90.cuh on Hopper.
//
// Weights are the M side of a tile and never pass through shared memory: each warp owns 32 weight
// rows, whose blocks its threads load and dequantise straight to matrix operands. Rows of x are the
// N side, up to kTileX of them, copied to shared memory in stages of 64 values and read by all
// warps.

inline constexpr int kTileX = 128;
inline constexpr int kStageBytes = kTileX * kStageValues * 2;

struct GemmParams {
  FragmentRows x;
  // weights; gate and up, or one alone
  const std::byte* weight[2] = {};
  int64_t row_bytes = 0;
  int64_t expert_bytes = 0;
  int rows = 0;
  int k = 0;
  int rows_per_group = 0;  // group g = row / rows_per_group reads values g k ... of x
  // sorted rows of experts; null: all rows, expert 0
  const int32_t* order = nullptr;
  const int32_t* begin = nullptr;
  const int32_t* count = nullptr;
  int num_experts = 0;
  // results: float rows, with an order row order[r] for r; or f16
  float* out = nullptr;
  int64_t out_stride = 0;
  FragmentRows out_half;
  // gate and up
  const float* slot_weights = nullptr;  // of slot s: [s / top_k, s % top_k]
  int64_t slot_weights_stride = 0;
  int top_k = 1;
  float limit = 0;
};

/// The rows of x that a CTA works on.
struct XTile {
  int expert = 0;
  int begin = 0;
  int count = 0;  // 0: nothing to do
};

/// Tile `tile_idx` over all experts' rows. An expert's rows are split in tiles of about equal size.
__device__ __forceinline__ XTile find_tile(const GemmParams& params, int tile_idx) {
  if (params.order == nullptr) {
    const int begin = tile_idx * kTileX;
    return {0, begin, min(kTileX, static_cast<int>(params.x.rows) - begin)};
  }
  const int lane = threadIdx.x % 32;
  int before = 0;
  for (int first = 0; first < params.num_experts; first += 32) {
    const int expert = first + lane;
    const int begin = expert < params.num_experts ? params.begin[expert] : 0;
    const int count = expert < params.num_experts ? params.count[expert] : 0;
    const int tiles = (count + kTileX - 1) / kTileX;
    int inclusive = tiles;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int below = __shfl_up_sync(0xffffffff, inclusive, distance);
      if (lane >= distance) inclusive += below;
    }
    const uint32_t reached = __ballot_sync(0xffffffff, tile_idx < before + inclusive);
    if (reached != 0) {
      const int owner = __ffs(static_cast<int>(reached)) - 1;
      const int tile = tile_idx - before - __shfl_sync(0xffffffff, inclusive - tiles, owner);
      const int owner_begin = __shfl_sync(0xffffffff, begin, owner);
      const int owner_count = __shfl_sync(0xffffffff, count, owner);
      const int owner_tiles = __shfl_sync(0xffffffff, tiles, owner);
      const int size = ((owner_count + owner_tiles - 1) / owner_tiles + 15) / 16 * 16;
      return {first + owner, owner_begin + tile * size, min(size, owner_count - tile * size)};
    }
    before += __shfl_sync(0xffffffff, inclusive, 31);
  }
  return {};
}

/// The tile of x in block `stage`: a piece of memory of tile_bytes().
__device__ __forceinline__ const __half* tile_data(
    const GemmParams& params, const XTile& tile, int tile_row, int stage) {
  const int64_t block = tile_row / params.rows_per_group * (params.k / kStageValues) + stage;
  return params.x.data + (block * params.x.block_rows + tile.begin) * kStageValues;
}
__device__ __forceinline__ int tile_bytes(const XTile& tile) {
  return (tile.count + 15) / 16 * 16 * kStageValues * 2;
}

/// The weight rows of a thread: fragment, half. kGateUp: of a warp's 32 rows, 16 are of the gate
/// and 16, of the same indices, of up.
template <bool kGateUp>
struct ThreadRows {
  static constexpr int kWarpRows = kGateUp ? 16 : 32;
  const std::byte* data[2][2];
  int idx[2][2];

  __device__ __forceinline__ ThreadRows(
      const GemmParams& params, int expert, int tile_row, int warp) {
    const int group = threadIdx.x % 32 / 4;
#pragma unroll
    for (int f = 0; f < 2; ++f) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        idx[f][half] = tile_row + warp * kWarpRows + (kGateUp ? 0 : f * 16) + half * 8 + group;
        data[f][half] = params.weight[kGateUp ? f : 0] + expert * params.expert_bytes +
                        min(idx[f][half], params.rows - 1) * params.row_bytes;
      }
    }
  }
};

__device__ __forceinline__ float silu(float g) {
  return g / (1.0f + expf(-g));
}

__device__ __forceinline__ __half to_half_clamped(float value) {
  return __float2half_rn(fminf(fmaxf(value, -65504.0f), 65504.0f));
}

/// Stores a warp's sums: sum[f][n] is the fragment of rows rows.idx[f] and x rows 8 n ...
template <bool kGateUp>
__device__ __forceinline__ void store_sums(
    const GemmParams& params, const XTile& tile, const ThreadRows<kGateUp>& rows,
    const float (&sum)[2][kTileX / 8][4]) {
  const int pair = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < kTileX / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int x_row = n * 8 + pair * 2 + e;
      if (x_row >= tile.count) continue;
      const int sorted = tile.begin + x_row;
      if constexpr (kGateUp) {
        float weight = 1.0f;
        if (params.slot_weights != nullptr) {
          const int slot = params.order[sorted];
          weight = params.slot_weights
                       [slot / params.top_k * params.slot_weights_stride + slot % params.top_k];
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = rows.idx[0][half];
          if (row >= params.rows) continue;
          const float g = fminf(sum[0][n][2 * half + e], params.limit);
          const float u = fminf(fmaxf(sum[1][n][2 * half + e], -params.limit), params.limit);
          params.out_half.data[params.out_half.offset(sorted, row)] =
              to_half_clamped(silu(g) * u * weight);
        }
      } else {
        const int64_t target = params.order != nullptr ? params.order[sorted] : sorted;
#pragma unroll
        for (int f = 0; f < 2; ++f) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int row = rows.idx[f][half];
            if (row >= params.rows) continue;
            const float value = sum[f][n][2 * half + e];
            if (params.out_half.data != nullptr) {
              params.out_half.data[params.out_half.offset(target, row)] = to_half_clamped(value);
            } else {
              params.out[target * params.out_stride + row] = value;
            }
          }
        }
      }
    }
  }
}

}  // namespace tandem::cuda
