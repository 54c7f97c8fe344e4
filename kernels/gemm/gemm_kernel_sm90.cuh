#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/barrier.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/wgmma.cuh"
#include "kernels/gemm/gemm_parts.cuh"
#include "kernels/gemm/weight_fragments.cuh"

namespace tandem::cuda {

// Two warpgroups multiply, each with the weights in registers and x in shared memory, and one warp
// of a third copies x. The warpgroups meet only the copying warp, not each other, so that one
// dequantises while the other's instructions occupy the matrix units.

struct Sm90Shape {
  static constexpr int kMultiplyWarps = 8;
  static constexpr int kThreads = 32 * (kMultiplyWarps + 4);  // one thread of the last four copies
  static constexpr int kMultiplyRegisters = 240;
  static constexpr int kCopyRegisters = 24;
  static constexpr int kStages = 8;
  static constexpr int kBarriers = kStages * kStageBytes;  // full, then empty
  static constexpr int kSharedBytes = kBarriers + 2 * kStages * 8;
};

#ifdef TANDEM_HAS_WGMMA

/// The copying thread: fills the stages with the tile's rows, in order.
__device__ __forceinline__ void copy_x(
    const GemmParams& params, const XTile& tile, int tile_row, uint32_t base) {
  using Shape = Sm90Shape;
  const int num_stages = (params.k + kStageValues - 1) / kStageValues;
  for (int stage = 0; stage < num_stages; ++stage) {
    const int slot = stage % Shape::kStages;
    const int round = stage / Shape::kStages;
    if (round > 0) {
      barrier_wait(base + Shape::kBarriers + (Shape::kStages + slot) * 8, (round - 1) % 2);
    }
    copy_bulk(
        base + slot * kStageBytes, tile_data(params, tile, tile_row, stage), tile_bytes(tile),
        base + Shape::kBarriers + slot * 8);
  }
}

/// sum[f] += the stage's 64 values of a[f] and the tile.
template <int kN>
__device__ __forceinline__ void multiply_stage(
    float (&sum)[2][kTileX / 8][4], const uint32_t (&a)[2][2][2][4], uint64_t descriptor) {
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int f = 0; f < 2; ++f) {
      const uint32_t operand[4] = {
          a[f][0][step / 2][step % 2 * 2], a[f][1][step / 2][step % 2 * 2],
          a[f][0][step / 2][step % 2 * 2 + 1], a[f][1][step / 2][step % 2 * 2 + 1]};
      wgmma_m64k16<kN>(sum[f], operand, descriptor + step * 2);
    }
  }
  wgmma_commit();
  wgmma_wait<0>();
}

__device__ __forceinline__ void multiply_stage_any(
    int num_sixteens, float (&sum)[2][kTileX / 8][4], const uint32_t (&a)[2][2][2][4],
    uint64_t descriptor) {
  switch (num_sixteens) {
    case 1: return multiply_stage<16>(sum, a, descriptor);
    case 2: return multiply_stage<32>(sum, a, descriptor);
    case 3: return multiply_stage<48>(sum, a, descriptor);
    case 4: return multiply_stage<64>(sum, a, descriptor);
    case 5: return multiply_stage<80>(sum, a, descriptor);
    case 6: return multiply_stage<96>(sum, a, descriptor);
    case 7: return multiply_stage<112>(sum, a, descriptor);
    default: return multiply_stage<128>(sum, a, descriptor);
  }
}

/// The eight multiplying warps: the whole tile, and the store.
template <DType kDType, bool kGateUp>
__device__ __forceinline__ void multiply_tile(
    const GemmParams& params, const XTile& tile, int tile_row, const Iq2Shared& iq2,
    uint32_t base) {
  using Shape = Sm90Shape;
  using Weights = WeightFragments<kDType>;
  const int pair = threadIdx.x % 4;
  const int num_stages = (params.k + kStageValues - 1) / kStageValues;
  const int num_sixteens = (tile.count + 15) / 16;
  const ThreadRows<kGateUp> rows(params, tile.expert, tile_row, threadIdx.x / 32);
  typename Weights::Raw raw[2][2];
#pragma unroll
  for (int f = 0; f < 2; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Weights::fetch(raw[f][half], rows.data[f][half], params.k, 0, pair);
    }
  }

  float sum[2][kTileX / 8][4] = {};
  for (int stage = 0; stage < num_stages; ++stage) {
    uint32_t a[2][2][2][4];  // fragment, half, group of 32, word
#pragma unroll
    for (int f = 0; f < 2; ++f) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Weights::decode(raw[f][half], iq2, stage, pair, a[f][half]);
        if (stage + 1 < num_stages) {
          Weights::fetch(raw[f][half], rows.data[f][half], params.k, stage + 1, pair);
        }
      }
    }
    const int slot = stage % Shape::kStages;
    barrier_wait(base + Shape::kBarriers + slot * 8, stage / Shape::kStages % 2);
    multiply_stage_any(num_sixteens, sum, a, wgmma_descriptor(base + slot * kStageBytes));
    if (threadIdx.x % 32 == 0) {
      barrier_arrive(base + Shape::kBarriers + (Shape::kStages + slot) * 8);
    }
  }
  store_sums<kGateUp>(params, tile, rows, sum);
}

#endif  // TANDEM_HAS_WGMMA

template <DType kDType, bool kGateUp>
__global__ __launch_bounds__(Sm90Shape::kThreads, 1) void gemm_sm90_kernel(
    const __grid_constant__ GemmParams params) {
#ifdef TANDEM_HAS_WGMMA
  using Shape = Sm90Shape;
  constexpr int kTileRows = Shape::kMultiplyWarps * ThreadRows<kGateUp>::kWarpRows;

  extern __shared__ __align__(1024) std::byte smem[];
  __shared__ Iq2Shared iq2;
  if constexpr (kDType == DType::kIQ2_XXS) fill_iq2_shared(iq2);
  const uint32_t base = shared_address(smem);
  if (threadIdx.x < Shape::kStages) {
    barrier_init(base + Shape::kBarriers + threadIdx.x * 8, 1);
    barrier_init(
        base + Shape::kBarriers + (Shape::kStages + threadIdx.x) * 8, Shape::kMultiplyWarps);
  }
  pdl_wait();
  pdl_launch_dependents();
  const XTile tile = find_tile(params, blockIdx.y);
  if (tile.count <= 0) return;
  __syncthreads();

  const int warp = threadIdx.x / 32;
  const int tile_row = blockIdx.x * kTileRows;
  if (warp >= Shape::kMultiplyWarps) {
    shrink_registers<Shape::kCopyRegisters>();
    if (threadIdx.x == 32 * Shape::kMultiplyWarps) copy_x(params, tile, tile_row, base);
  } else {
    grow_registers<Shape::kMultiplyRegisters>();
    multiply_tile<kDType, kGateUp>(params, tile, tile_row, iq2, base);
  }
#endif
}

template <DType kDType, bool kGateUp>
Status launch_gemm_sm90(const Exec& exec, const GemmParams& params, int num_tiles_x) {
  constexpr int kTileRows = Sm90Shape::kMultiplyWarps * ThreadRows<kGateUp>::kWarpRows;
  const dim3 grid(
      static_cast<unsigned>((params.rows + kTileRows - 1) / kTileRows),
      static_cast<unsigned>(num_tiles_x));
  return launch(
      "gemm", gemm_sm90_kernel<kDType, kGateUp>, grid, dim3(Sm90Shape::kThreads),
      Sm90Shape::kSharedBytes, exec.stream, params);
}

}  // namespace tandem::cuda
