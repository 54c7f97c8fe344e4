#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/experts/expert_groups.cuh"
#include "kernels/experts/experts.h"
#include "kernels/experts/experts_gate_up.cuh"
#include "kernels/linear/tile_dot.cuh"

namespace tandem::cuda {

// down of the chosen experts and the shared one, summed: work items of 16 output rows. Each warp
// takes an eighth of the columns of every expert in turn; the sums of a row over its slots, in
// order, come last.

struct DownArgs {
  ExpertsArgs op;
  const std::byte* packed;  // middle rows, packed
  int middle_cols;
  int num_rows;
};

/// Floats of shared memory that hold every warp's sums: [warp][row * slots + slot][kExpertTile].
constexpr int64_t down_sums(int64_t num_rows, int64_t top_k) {
  return kExpertWarps * num_rows * (top_k + 1) * kExpertTile;
}

/// A warp's sums of a tile to where those of its rows' slots stand: acc[c] is of the pair
/// pair_of(4 c + this lane's), [row * num_slots + slot], or of none if that is negative.
template <int kQuads, class PairOf>
__device__ __forceinline__ void keep_sums(
    const float (&acc)[kQuads][2], const PairOf& pair_of, float* warp_sums) {
  const int lane = threadIdx.x % kWarpLanes;
#pragma unroll
  for (int c = 0; c < kQuads; ++c) {
    const int pair = pair_of(kQuadRows * c + lane % 4);
    if (pair < 0) continue;
    float* to = warp_sums + pair * kExpertTile + lane / 4;
    to[0] = acc[c][0];
    to[8] = acc[c][1];
  }
}

/// The columns of this warp.
__device__ __forceinline__ ColRange down_range(DType dtype, int64_t cols) {
  return k_range(
      static_cast<int>(cols), kExpertWarps, static_cast<int>(threadIdx.x) / kWarpLanes,
      dot_grain(dtype));
}

// Grid: CTAs that stay; each takes a contiguous range of tiles of 16 output rows. At most kRows
// rows.
template <DType kDType, int kRows>
__global__ __launch_bounds__(kExpertThreads, 2) void down_kernel(
    const __grid_constant__ DownArgs args) {
  constexpr int kSharedQuads = num_quads(kRows);
  extern __shared__ __align__(128) std::byte dynamic[];
  __shared__ ExpertGroups groups;
  const ExpertsArgs& op = args.op;
  const int warp = threadIdx.x / kWarpLanes;
  const auto top_k = static_cast<int>(op.expert_ids.cols);
  const int num_slots = top_k + 1;
  const auto num_tiles = static_cast<int>((op.out.cols + kExpertTile - 1) / kExpertTile);
  const auto num_ctas = static_cast<int>(gridDim.x);
  int tile = static_cast<int>(static_cast<int64_t>(blockIdx.x) * num_tiles / num_ctas);
  const int end = static_cast<int>(static_cast<int64_t>(blockIdx.x + 1) * num_tiles / num_ctas);
  auto* tables = reinterpret_cast<DotTables*>(dynamic);
  if constexpr (needs_tables<kDType>()) fill_tables<kExpertThreads>(*tables);
  pdl_wait();
  pdl_launch_dependents();

  if constexpr (kRows == 1) {
    if constexpr (needs_tables<kDType>()) __syncthreads();
  } else {
    build_groups<kExpertThreads>(
        op.expert_ids.data, op.expert_ids.stride, args.num_rows, top_k, groups);
  }
  const int num_groups = kRows == 1 ? top_k : groups.count;
  const auto rows_of = [&](int group, int first) {
    WeightView weight = op.down.first;
    // The pairs of a single row are its slots, and each is a group.
    const int expert = kRows == 1 ? op.expert_ids.data[group] : groups.expert[group];
    weight.data += expert * op.down.expert_bytes;
    return LaneRows(weight, first);
  };

  float* sums = reinterpret_cast<float*>(dynamic + table_bytes<kDType>());
  const CodeRows rows = code_rows_at(
      const_cast<std::byte*>(args.packed), args.num_rows * num_slots, args.middle_cols);
  float* warp_sums = sums + warp * args.num_rows * num_slots * kExpertTile;
  const auto shared_x = code_lane<kSharedQuads>(
      rows, [&](int t) { return min(t, args.num_rows - 1) * num_slots + top_k; });
  const ColRange cols = down_range(kDType, args.middle_cols);
  const ColRange shared_cols = down_range(DType::kQ8_0, args.middle_cols);

  // With one block of Q2_K for each warp, the next expert's is read while one is multiplied.
  const bool one_block = kDType == DType::kQ2_K && args.middle_cols == 256 * kExpertWarps;
  for (; tile < end; ++tile) {
    const int first = tile * kExpertTile;
    Q2kBlock next;
    const auto load_next = [&](int group) {
      const LaneRows lane_rows = rows_of(group, first);
      load_q2_k(lane_rows.low, lane_rows.high, kExpertWarps, warp, next);
    };
    if (one_block) load_next(0);
    {
      const LaneRows lane_rows(op.shared_down, first);
      float acc[kSharedQuads][2] = {};
      tile_dot<DType::kQ8_0, kSharedQuads>(
          lane_rows.low, lane_rows.high, args.middle_cols, shared_cols.begin, shared_cols.end,
          shared_x, acc, tables);
      keep_sums<kSharedQuads>(
          acc, [&](int t) { return t < args.num_rows ? t * num_slots + top_k : -1; }, warp_sums);
    }
    for (int group = 0; group < num_groups; ++group) {
      const int num_pairs = kRows == 1 ? 1 : groups.num_pairs[group];
      const auto packed_row = [&](int i) {
        return kRows == 1 ? group : static_cast<int>(groups.middle_row[group][i]);
      };
      const auto x = code_lane<1>(rows, [&](int i) { return packed_row(min(i, num_pairs - 1)); });
      float acc[1][2] = {};
      if (one_block) {
        const Q2kBlock weight = next;
        if (group + 1 < num_groups) load_next(group + 1);
        dot_q2_k_block<1>(weight, warp, x, acc);
      } else {
        const LaneRows lane_rows = rows_of(group, first);
        tile_dot<kDType, 1>(
            lane_rows.low, lane_rows.high, args.middle_cols, cols.begin, cols.end, x, acc, tables);
      }
      keep_sums<1>(
          acc, [&](int i) { return i < num_pairs ? packed_row(i) : -1; }, warp_sums);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kExpertTile * args.num_rows; i += kExpertThreads) {
      const int t = i / kExpertTile;
      const int row = i % kExpertTile;
      if (first + row >= op.out.cols) continue;
      float total = 0;
      for (int slot = 0; slot < num_slots; ++slot) {
        float sum = 0;
        for (int w = 0; w < kExpertWarps; ++w) {
          sum += sums[((w * args.num_rows + t) * num_slots + slot) * kExpertTile + row];
        }
        total += sum;
      }
      op.out.row(t)[first + row] = total;
    }
    __syncthreads();
  }
}

}  // namespace tandem::cuda
