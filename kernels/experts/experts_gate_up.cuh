#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/experts/expert_groups.cuh"
#include "kernels/experts/experts.h"
#include "kernels/linear/tile_dot.cuh"

namespace tandem::cuda {

// gate, up and activation of the chosen experts and the shared one: work items of 16 gate rows and
// the same 16 up rows. Four warps take the gate rows, each a quarter of the columns, four the up
// rows.

inline constexpr int kExpertThreads = 256;
inline constexpr int kExpertWarps = kExpertThreads / kWarpLanes;
inline constexpr int kExpertTile = 16;

struct GateUpArgs {
  ExpertsArgs op;
  const std::byte* packed;  // x of more than one row, packed
  Rows middle;              // [n * (top_k + 1)]: row t * (top_k + 1) + slot, the shared one last
  int num_rows;
  int shared_items;
  int items_per_expert;
  int rotate;  // CTAs that run at once on different multiprocessors
};

/// Routed item `round` of this CTA, or a number past the last. The first CTAs, which have a shared
/// item each, sit out the second round. Later rounds begin with the CTAs that share a
/// multiprocessor with CTAs that came first, so that an uneven end falls on all multiprocessors
/// alike.
__device__ __forceinline__ int routed_item(const GateUpArgs& args, int round) {
  const auto num_ctas = static_cast<int>(gridDim.x);
  const auto cta = static_cast<int>(blockIdx.x);
  const int with_shared = min(args.shared_items, num_ctas - 1);
  if (round == 0) return cta;
  if (round == 1) return cta < with_shared ? 1 << 30 : num_ctas + cta - with_shared;
  return (2 * num_ctas - with_shared) + (round - 2) * num_ctas + (cta + args.rotate) % num_ctas;
}

/// This warp's part of a tile's dots into sums [kExpertWarps][kExpertTile][kCols].
template <DType kDType, int kCols8, bool kOneRow>
__device__ __forceinline__ void gate_up_tile(
    const WeightView& weight, int first, const Int8Lane<kCols8, kOneRow>& x,
    const DotTables* tables, float* sums) {
  constexpr int kCols = kOneRow ? 1 : 8 * kCols8;
  const int warp = threadIdx.x / kWarpLanes;
  const int lane = threadIdx.x % kWarpLanes;
  const auto rows = static_cast<int>(weight.rows);
  const auto cols = static_cast<int>(weight.cols);
  const int grain = dot_grain(kDType);
  const int per_warp = ((cols + grain - 1) / grain + 3) / 4 * grain;
  const int begin = min(warp % 4 * per_warp, cols);
  const int end = min(begin + per_warp, cols);
  const int low = min(first + lane / 4, rows - 1);
  const int high = min(first + lane / 4 + 8, rows - 1);
  float acc[kCols8][4] = {};
  tile_dot_int8<kDType, kCols8>(
      weight.data + low * weight.row_bytes, weight.data + high * weight.row_bytes, cols, begin, end,
      x, acc, tables);
  float* to = sums + (warp * kExpertTile + lane / 4) * kCols;
  if constexpr (kOneRow) {
    if (lane % 4 == 0) {
      to[0] = acc[0][0];
      to[8] = acc[0][2];
    }
  } else {
#pragma unroll
    for (int c = 0; c < kCols8; ++c) {
      const int col = 8 * c + lane % 4 * 2;
      to[col] = acc[c][0];
      to[col + 1] = acc[c][1];
      to[8 * kCols + col] = acc[c][2];
      to[8 * kCols + col + 1] = acc[c][3];
    }
  }
}

/// Adds the quarters and stores the activations of the rows that chose the expert.
template <int kCols>
__device__ __forceinline__ void store_activations(
    const GateUpArgs& args, const float* sums, int first, int dim, const ExpertGroups* groups,
    int group) {
  const auto top_k = static_cast<int>(args.op.expert_ids.cols);
  for (int i = threadIdx.x; i < kExpertTile * args.num_rows; i += kExpertThreads) {
    const int t = i / kExpertTile;
    const int row = i % kExpertTile;
    int slot = top_k;
    float weight = 1.0f;
    float limit = args.op.shared_swiglu_limit;
    if (groups != nullptr) {
      slot = groups->slot[group][t];
      if (slot < 0) continue;
      weight = args.op.expert_weights.row(t)[slot];
      limit = args.op.swiglu_limit;
    }
    if (first + row >= dim) continue;
    float gate = 0;
    float up = 0;
    for (int k = 0; k < 4; ++k) {
      gate += sums[(k * kExpertTile + row) * kCols + t];
      up += sums[((k + 4) * kExpertTile + row) * kCols + t];
    }
    args.middle.row(t * (top_k + 1) + slot)[first + row] = activate(gate, up, limit, weight);
  }
}

// Grid: CTAs that stay.
template <DType kDType, int kCols8, bool kOneRow>
__global__ __launch_bounds__(kExpertThreads, kOneRow ? 3 : 2) void gate_up_kernel(
    const __grid_constant__ GateUpArgs args) {
  constexpr int kCols = kOneRow ? 1 : 8 * kCols8;
  extern __shared__ __align__(128) std::byte dynamic[];
  __shared__ float sums[2][kExpertWarps * kExpertTile * kCols];
  __shared__ ExpertGroups groups;

  const ExpertsArgs& op = args.op;
  const int warp = threadIdx.x / kWarpLanes;
  const bool takes_up = warp >= 4;
  auto* tables = reinterpret_cast<DotTables*>(dynamic);
  if constexpr (needs_tables<kDType>()) fill_tables<kExpertThreads>(*tables);
  pdl_wait();
  pdl_launch_dependents();

  const auto top_k = static_cast<int>(op.expert_ids.cols);
  build_groups<kExpertThreads>(
      op.expert_ids.data, op.expert_ids.stride, args.num_rows, top_k, groups);

  Int8Rows rows;
  if constexpr (kOneRow) {
    rows = int8_rows_at(dynamic + table_bytes<kDType>(), 1, op.x.cols);
    pack_int8_row<kExpertThreads>(op.x.data, rows, 0);
    __syncthreads();
  } else {
    rows = int8_rows_at(const_cast<std::byte*>(args.packed), args.num_rows, op.x.cols);
  }
  const auto x = int8_lane<kCols8, kOneRow>(rows, kOneRow ? 1 : args.num_rows);

  int buffer = 0;
  for (int item = blockIdx.x; item < args.shared_items; item += gridDim.x, buffer ^= 1) {
    const WeightView& weight = takes_up ? op.shared_up : op.shared_gate;
    gate_up_tile<DType::kQ8_0, kCols8, kOneRow>(
        weight, item * kExpertTile, x, tables, sums[buffer]);
    __syncthreads();
    store_activations<kCols>(
        args, sums[buffer], item * kExpertTile, static_cast<int>(weight.rows), nullptr, 0);
  }
  const int num_items = groups.count * args.items_per_expert;
  for (int round = 0; true; ++round) {
    const int item = routed_item(args, round);
    if (item >= num_items) {
      if (round == 0 || round == 1) continue;
      break;
    }
    const int group = item / args.items_per_expert;
    const int first = item % args.items_per_expert * kExpertTile;
    const ExpertWeightView& weights = takes_up ? op.up : op.gate;
    WeightView weight = weights.first;
    weight.data += groups.expert[group] * weights.expert_bytes;
    gate_up_tile<kDType, kCols8, kOneRow>(weight, first, x, tables, sums[buffer]);
    __syncthreads();
    store_activations<kCols>(
        args, sums[buffer], first, static_cast<int>(weight.rows), &groups, group);
    buffer ^= 1;
  }
}

}  // namespace tandem::cuda
