#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/barrier.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/gemm/gemm_parts.cuh"
#include "kernels/gemm/weight_fragments.cuh"

namespace tandem::cuda {

inline constexpr int kGemmStages = 4;
inline constexpr int kGemmSharedBytes = kGemmStages * (kStageBytes + 8);

template <DType kDType, int kWarps, bool kGateUp>
__global__ __launch_bounds__(32 * kWarps, 8 / kWarps) void gemm_kernel(
    const __grid_constant__ GemmParams params) {
  using Weights = WeightFragments<kDType>;
  constexpr int kFragmentsN = kTileX / 8;
  constexpr int kTileRows = kWarps * ThreadRows<kGateUp>::kWarpRows;

  extern __shared__ __align__(1024) std::byte smem[];
  __shared__ Iq2Shared iq2;
  const uint32_t smem_x = shared_address(smem);
  const uint32_t barriers = smem_x + kGemmStages * kStageBytes;
  if constexpr (kDType == DType::kIQ2_XXS) fill_iq2_shared(iq2);
  if (threadIdx.x < kGemmStages) barrier_init(barriers + threadIdx.x * 8, 1);
  pdl_wait();
  pdl_launch_dependents();

  const XTile tile = find_tile(params, blockIdx.y);
  if (tile.count <= 0) return;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  const int pair = lane % 4;
  const int tile_row = blockIdx.x * kTileRows;
  const int num_stages = (params.k + kStageValues - 1) / kStageValues;
  const auto start_copy = [&](int stage) {
    if (threadIdx.x != 0 || stage >= num_stages) return;
    const int slot = stage % kGemmStages;
    copy_bulk(
        smem_x + slot * kStageBytes, tile_data(params, tile, tile_row, stage), tile_bytes(tile),
        barriers + slot * 8);
  };
#pragma unroll
  for (int i = 0; i < kGemmStages - 1; ++i) start_copy(i);

  const ThreadRows<kGateUp> rows(params, tile.expert, tile_row, threadIdx.x / 32);
  typename Weights::Raw raw[2][2];
#pragma unroll
  for (int f = 0; f < 2; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Weights::fetch(raw[f][half], rows.data[f][half], params.k, 0, pair);
    }
  }

  float sum[2][kFragmentsN][4] = {};
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
    const int slot = stage % kGemmStages;
    __syncthreads();  // every warp is done with the stage before, whose slot is filled next
    start_copy(stage + kGemmStages - 1);
    barrier_wait(barriers + slot * 8, stage / kGemmStages % 2);

    const uint32_t rows_address =
        smem_x + slot * kStageBytes + (lane % 8 + lane / 16 * 8) * kStageValues * 2;
#pragma unroll
    for (int n = 0; n < kFragmentsN; n += 2) {
      if (n * 8 < tile.count) {
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          uint32_t b[4];
          const int chunk = step * 2 + lane / 8 % 2;
          load_matrix_x4(b, rows_address + n * 8 * kStageValues * 2 + ((chunk ^ (lane % 8)) * 16));
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
  store_sums<kGateUp>(params, tile, rows, sum);
}

template <DType kDType, int kWarps, bool kGateUp>
Status launch_gemm(const Exec& exec, const GemmParams& params, int num_tiles_x) {
  constexpr int kTileRows = kWarps * ThreadRows<kGateUp>::kWarpRows;
  const dim3 grid(
      static_cast<unsigned>((params.rows + kTileRows - 1) / kTileRows),
      static_cast<unsigned>(num_tiles_x));
  return launch(
      "gemm", gemm_kernel<kDType, kWarps, kGateUp>, grid, dim3(32 * kWarps), kGemmSharedBytes,
      exec.stream, params);
}

}  // namespace tandem::cuda
