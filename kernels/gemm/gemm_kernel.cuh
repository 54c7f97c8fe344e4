#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/gemm/weight_fragments.cuh"

namespace tandem::cuda {

// One kernel for every product. Weights are the M side of a tile and never pass through shared
// memory: each warp owns 32 weight rows, whose blocks its threads load and dequantise straight to
// matrix operands. Rows of x are the N side, up to kTileX of them, copied to shared memory in
// stages of 64 values and read by all warps.

inline constexpr int kTileX = 128;

struct GemmParams {
  // x, f16 in fragment order
  const __half* x = nullptr;
  int64_t x_stride = 0;
  int n = 0;
  // weights; gate and up, or one alone
  const std::byte* weight[2] = {};
  int64_t row_bytes = 0;
  int64_t expert_bytes = 0;
  int rows = 0;
  int k = 0;
  int rows_per_group = 0;  // group g = row / rows_per_group reads columns g k ... of x
  // sorted rows of experts; null: all rows, expert 0
  const int32_t* order = nullptr;
  const int32_t* offsets = nullptr;
  int num_experts = 0;
  int gather_divisor = 0;  // > 0: sorted row r reads x row order[r] / gather_divisor
  bool scatter = false;    // sorted row r writes row order[r]
  // results: float rows, or f16 in fragment order
  float* out = nullptr;
  int64_t out_stride = 0;
  __half* out_half = nullptr;
  int64_t out_half_stride = 0;
  // gate and up
  const float* slot_weights = nullptr;  // of slot s: [s / gather_divisor, s % gather_divisor]
  int64_t slot_weights_stride = 0;
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
  if (params.offsets == nullptr) {
    const int begin = tile_idx * kTileX;
    return {0, begin, min(kTileX, params.n - begin)};
  }
  const int lane = threadIdx.x % 32;
  int before = 0;
  for (int first = 0; first < params.num_experts; first += 32) {
    const int expert = first + lane;
    const int begin = expert < params.num_experts ? params.offsets[expert] : 0;
    const int count = expert < params.num_experts ? params.offsets[expert + 1] - begin : 0;
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

template <int kWarps>
struct GemmShape {
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kStages = 4;
  static constexpr int kStageBytes = kTileX * kStageValues * 2;
  static constexpr int kSharedBytes = kStages * kStageBytes;
};

__device__ __forceinline__ float silu(float g) {
  return g / (1.0f + expf(-g));
}

/// kGateUp: of a warp's 32 rows, 16 are of the gate and 16, of the same indices, of up.
template <DType kDType, int kWarps, bool kGateUp>
__global__ __launch_bounds__(32 * kWarps, 8 / kWarps) void gemm_kernel(
    const __grid_constant__ GemmParams params) {
  using Shape = GemmShape<kWarps>;
  using Weights = WeightFragments<kDType>;
  constexpr int kFragmentsN = kTileX / 8;
  constexpr int kCopies = kTileX * 8 / Shape::kThreads;  // 16-byte copies of a thread and stage
  constexpr int kCopyRows = Shape::kThreads / 8;
  constexpr int kTileRows = kWarps * (kGateUp ? 16 : 32);

  extern __shared__ __align__(1024) std::byte smem[];
  __shared__ Iq2Shared iq2;
  if constexpr (kDType == DType::kIQ2_XXS) fill_iq2_shared(iq2);
  pdl_wait();
  pdl_launch_dependents();

  const XTile tile = find_tile(params, blockIdx.y);
  if (tile.count <= 0) return;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int group = lane / 4;
  const int pair = lane % 4;
  const int tile_row = blockIdx.x * kTileRows;
  const int num_stages = (params.k + kStageValues - 1) / kStageValues;

  // Copies of x: this thread's rows of the tile, 16 bytes at copy_chunk of each.
  const int copy_chunk = threadIdx.x % 8;
  const __half* x = params.x + tile_row / params.rows_per_group * params.k;
  int64_t copy_offset[kCopies];
#pragma unroll
  for (int i = 0; i < kCopies; ++i) {
    const int row = threadIdx.x / 8 + i * kCopyRows;
    int source = tile.begin + min(row, tile.count - 1);
    if (params.gather_divisor > 0) source = params.order[source] / params.gather_divisor;
    copy_offset[i] = row < tile.count ? source * params.x_stride : -1;
  }
  const uint32_t smem_x = shared_address(smem);
  const auto start_copy = [&](int stage) {
    const int k = stage * kStageValues + copy_chunk * 8;
    const uint32_t target = smem_x + stage % Shape::kStages * Shape::kStageBytes;
    if (stage < num_stages) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const int row = threadIdx.x / 8 + i * kCopyRows;
        const bool valid = copy_offset[i] >= 0 && k < params.k;
        copy_async_16(
            target + row * 128 + ((copy_chunk ^ (row % 8)) * 16),
            x + (valid ? copy_offset[i] + k : 0), valid);
      }
    }
    copy_async_commit();
  };

  // This thread's weight rows: fragment, half.
  const std::byte* weight_row[2][2];
  int row_idx[2][2];
#pragma unroll
  for (int f = 0; f < 2; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      row_idx[f][half] = kGateUp ? tile_row + warp * 16 + half * 8 + group
                                 : tile_row + warp * 32 + f * 16 + half * 8 + group;
      weight_row[f][half] = params.weight[kGateUp ? f : 0] + tile.expert * params.expert_bytes +
                            min(row_idx[f][half], params.rows - 1) * params.row_bytes;
    }
  }

#pragma unroll
  for (int i = 0; i < Shape::kStages - 1; ++i) start_copy(i);
  typename Weights::Raw raw[2][2];
#pragma unroll
  for (int f = 0; f < 2; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Weights::fetch(raw[f][half], weight_row[f][half], params.k, 0, pair);
    }
  }
  if constexpr (kDType == DType::kIQ2_XXS) __syncthreads();

  float sum[2][kFragmentsN][4] = {};
  for (int stage = 0; stage < num_stages; ++stage) {
    uint32_t a[2][2][2][4];  // fragment, half, group of 32, word
#pragma unroll
    for (int f = 0; f < 2; ++f) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Weights::decode(raw[f][half], iq2, stage, pair, a[f][half]);
        if (stage + 1 < num_stages) {
          Weights::fetch(raw[f][half], weight_row[f][half], params.k, stage + 1, pair);
        }
      }
    }
    copy_async_wait<Shape::kStages - 2>();
    __syncthreads();
    start_copy(stage + Shape::kStages - 1);

    const uint32_t rows_address =
        smem_x + stage % Shape::kStages * Shape::kStageBytes + (lane % 8 + lane / 16 * 8) * 128;
#pragma unroll
    for (int n = 0; n < kFragmentsN; n += 2) {
      if (n * 8 < tile.count) {
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          uint32_t b[4];
          const int chunk = step * 2 + lane / 8 % 2;
          load_matrix_x4(b, rows_address + n * 8 * 128 + ((chunk ^ (lane % 8)) * 16));
#pragma unroll
          for (int f = 0; f < 2; ++f) {
            const uint32_t operand[4] = {
                a[f][0][step / 2][step % 2 * 2], a[f][1][step / 2][step % 2 * 2],
                a[f][0][step / 2][step % 2 * 2 + 1], a[f][1][step / 2][step % 2 * 2 + 1]};
            mma_m16n8k16<__half>(sum[f][n], operand, b[0], b[1]);
            mma_m16n8k16<__half>(sum[f][n + 1], operand, b[2], b[3]);
          }
        }
      }
    }
  }

#pragma unroll
  for (int n = 0; n < kFragmentsN; ++n) {
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
                       [slot / params.gather_divisor * params.slot_weights_stride +
                        slot % params.gather_divisor];
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (row_idx[0][half] >= params.rows) continue;
          const float g = fminf(sum[0][n][2 * half + e], params.limit);
          const float u = fminf(fmaxf(sum[1][n][2 * half + e], -params.limit), params.limit);
          const float hidden = fminf(fmaxf(silu(g) * u * weight, -65504.0f), 65504.0f);
          params.out_half[sorted * params.out_half_stride + fragment_position(row_idx[0][half])] =
              __float2half_rn(hidden);
        }
      } else {
        const int64_t target = params.scatter ? params.order[sorted] : sorted;
#pragma unroll
        for (int f = 0; f < 2; ++f) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int row = row_idx[f][half];
            if (row >= params.rows) continue;
            const float value = sum[f][n][2 * half + e];
            if (params.out_half != nullptr) {
              params.out_half[target * params.out_half_stride + fragment_position(row)] =
                  __float2half_rn(fminf(fmaxf(value, -65504.0f), 65504.0f));
            } else {
              params.out[target * params.out_stride + row] = value;
            }
          }
        }
      }
    }
  }
}

template <DType kDType, int kWarps, bool kGateUp>
Status launch_gemm(const Exec& exec, const GemmParams& params, int num_tiles_x) {
  constexpr int kTileRows = kWarps * (kGateUp ? 16 : 32);
  const dim3 grid(
      static_cast<unsigned>((params.rows + kTileRows - 1) / kTileRows),
      static_cast<unsigned>(num_tiles_x));
  return launch(
      "gemm", gemm_kernel<kDType, kWarps, kGateUp>, grid, dim3(32 * kWarps),
      GemmShape<kWarps>::kSharedBytes, exec.stream, params);
}

}  // namespace tandem::cuda
