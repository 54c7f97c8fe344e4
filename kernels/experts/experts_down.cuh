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

/// The lane's view when activation row t is the packed middle row of its slot; slot[t] < 0: none,
/// and the lane reads any row.
template <int kCols8, bool kOneRow, class SlotOf>
__device__ __forceinline__ Int8Lane<kCols8, kOneRow> middle_lane(
    const Int8Rows& rows, int num_rows, int num_slots, const SlotOf& slot_of) {
  const int group = threadIdx.x % kWarpLanes / 4;
  const int pair = threadIdx.x % 4;
  const auto row_of = [&](int t) {
    const int slot = t < num_rows ? slot_of(t) : -1;
    return slot < 0 ? 0 : t * num_slots + slot;
  };
  Int8Lane<kCols8, kOneRow> lane;
#pragma unroll
  for (int c = 0; c < kCols8; ++c) {
    const int row = row_of(8 * c + group);
    lane.q[c] = rows.q + row * rows.q_stride + 8 * pair;
    lane.sum[c] = rows.sum + row * (rows.cols / 16);
    for (int i = 0; i < 2; ++i) {
      lane.d[c][i] = rows.d + row_of(8 * c + 2 * pair + i) * (rows.cols / 32);
    }
  }
  return lane;
}

/// A warp's sums of a tile to where those of the rows' slots stand.
template <int kCols8, class SlotOf>
__device__ __forceinline__ void keep_sums(
    const float (&acc)[kCols8][4], int num_rows, int num_slots, const SlotOf& slot_of,
    float* warp_sums) {
  const int lane = threadIdx.x % kWarpLanes;
#pragma unroll
  for (int c = 0; c < kCols8; ++c) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = 8 * c + lane % 4 * 2 + i;
      const int slot = t < num_rows ? slot_of(t) : -1;
      if (slot < 0) continue;
      float* to = warp_sums + (t * num_slots + slot) * kExpertTile + lane / 4;
      to[0] = acc[c][i];
      to[8] = acc[c][2 + i];
    }
  }
}

template <DType kDType, int kCols8, bool kOneRow, class SlotOf>
__device__ __forceinline__ void down_tile(
    const WeightView& weight, int first, const Int8Lane<kCols8, kOneRow>& x,
    const DotTables* tables, int num_rows, int num_slots, const SlotOf& slot_of, float* warp_sums) {
  const int warp = threadIdx.x / kWarpLanes;
  const int lane = threadIdx.x % kWarpLanes;
  const auto rows = static_cast<int>(weight.rows);
  const auto cols = static_cast<int>(weight.cols);
  const int grain = dot_grain(kDType);
  const int per_warp = ((cols + grain - 1) / grain + kExpertWarps - 1) / kExpertWarps * grain;
  const int begin = min(warp * per_warp, cols);
  const int end = min(begin + per_warp, cols);
  const int low = min(first + lane / 4, rows - 1);
  const int high = min(first + lane / 4 + 8, rows - 1);
  float acc[kCols8][4] = {};
  tile_dot_int8<kDType, kCols8>(
      weight.data + low * weight.row_bytes, weight.data + high * weight.row_bytes, cols, begin, end,
      x, acc, tables);
  keep_sums<kCols8>(acc, num_rows, num_slots, slot_of, warp_sums);
}

// Grid: CTAs that stay; each takes a contiguous range of tiles of 16 output rows.
template <DType kDType, int kCols8, bool kOneRow>
__global__ __launch_bounds__(kExpertThreads, 2) void down_kernel(
    const __grid_constant__ DownArgs args) {
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

  build_groups<kExpertThreads>(
      op.expert_ids.data, op.expert_ids.stride, args.num_rows, top_k, groups);
  const auto expert_down = [&](int group) {
    WeightView weight = op.down.first;
    weight.data += groups.expert[group] * op.down.expert_bytes;
    return weight;
  };

  float* sums = reinterpret_cast<float*>(dynamic + table_bytes<kDType>());
  const Int8Rows rows = int8_rows_at(
      const_cast<std::byte*>(args.packed), args.num_rows * num_slots, args.middle_cols);
  float* warp_sums = sums + warp * args.num_rows * num_slots * kExpertTile;
  const auto shared_slot = [&](int) { return top_k; };
  const auto shared_x = middle_lane<kCols8, kOneRow>(rows, args.num_rows, num_slots, shared_slot);

  // With one block of Q2_K for each warp, the next expert's is read while one is multiplied.
  const bool one_block = kDType == DType::kQ2_K && args.middle_cols == 256 * kExpertWarps;
  for (; tile < end; ++tile) {
    const int first = tile * kExpertTile;
    Q2kBlock next;
    const auto load_next = [&](int group) {
      const WeightView weight = expert_down(group);
      const auto last = static_cast<int>(weight.rows) - 1;
      const int row = first + static_cast<int>(threadIdx.x) % kWarpLanes / 4;
      load_q2_k(
          weight.data + min(row, last) * weight.row_bytes,
          weight.data + min(row + 8, last) * weight.row_bytes, kExpertWarps, warp, next);
    };
    if (one_block) load_next(0);
    down_tile<DType::kQ8_0, kCols8, kOneRow>(
        op.shared_down, first, shared_x, tables, args.num_rows, num_slots, shared_slot, warp_sums);
    for (int group = 0; group < groups.count; ++group) {
      // A single row's experts are all different and stand in the order of its slots.
      const auto slot_of = [&](int t) {
        return kOneRow ? group : static_cast<int>(groups.slot[group][t]);
      };
      const auto x = middle_lane<kCols8, kOneRow>(rows, args.num_rows, num_slots, slot_of);
      if (one_block) {
        const Q2kBlock weight = next;
        if (group + 1 < groups.count) load_next(group + 1);
        float acc[kCols8][4] = {};
        dot_q2_k_block<kCols8>(weight, warp, x, acc);
        keep_sums<kCols8>(acc, args.num_rows, num_slots, slot_of, warp_sums);
        continue;
      }
      down_tile<kDType, kCols8, kOneRow>(
          expert_down(group), first, x, tables, args.num_rows, num_slots, slot_of, warp_sums);
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
