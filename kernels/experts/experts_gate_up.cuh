#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/experts/expert_groups.cuh"
#include "kernels/experts/experts.h"
#include "kernels/linear/gemv_parts.cuh"
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

/// The two weight rows of this lane in a tile.
struct LaneRows {
  const std::byte* low;
  const std::byte* high;

  __device__ __forceinline__ LaneRows(const WeightView& weight, int first) {
    const int group = threadIdx.x % kWarpLanes / 4;
    const int last = static_cast<int>(weight.rows) - 1;
    low = weight.data + min(first + group, last) * weight.row_bytes;
    high = weight.data + min(first + group + 8, last) * weight.row_bytes;
  }
  __device__ __forceinline__ LaneRows() : low(nullptr), high(nullptr) {}
};

/// The columns of this warp, one of four that share a tile's.
__device__ __forceinline__ ColRange gate_up_range(DType dtype, int64_t cols) {
  return k_range(
      static_cast<int>(cols), 4, static_cast<int>(threadIdx.x) / kWarpLanes % 4, dot_grain(dtype));
}

/// Adds the quarters of a tile and stores an activation. `sums` is [kExpertWarps][kExpertTile]
/// [kCols]; `col` is the column of the row there, `to` its middle row.
template <int kCols>
__device__ __forceinline__ void store_activation(
    const float* sums, int row, int col, float limit, float weight, float* to) {
  float gate = 0;
  float up = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    gate += sums[(k * kExpertTile + row) * kCols + col];
    up += sums[((k + 4) * kExpertTile + row) * kCols + col];
  }
  *to = activate(gate, up, limit, weight);
}

/// A routed item: tile `first` of the expert of a group.
struct GateUpItem {
  int group;
  int first;
  LaneRows rows;  // of this warp: gate or up
};

// The routed items of a CTA in turn. The first block of an item's weights is asked for while the
// item before is multiplied, if the type is one whose blocks are read ahead.
template <DType kDType, int kRows>
class RoutedItems {
 public:
  __device__ RoutedItems(
      const GateUpArgs& args, const ExpertGroups& groups, int count,
      const ExpertWeightView& weights)
      : args_(args),
        groups_(groups),
        num_items_(count * args.items_per_expert),
        weights_(weights) {}

  /// The next item, if there is one.
  __device__ __forceinline__ bool next(GateUpItem& item) {
    for (; true; ++round_) {
      const int idx = routed_item(args_, round_);
      if (idx < num_items_) {
        ++round_;
        item.group = idx / args_.items_per_expert;
        item.first = idx % args_.items_per_expert * kExpertTile;
        WeightView weight = weights_.first;
        // The pairs of a single row are its slots, and each is a group.
        const int expert =
            kRows == 1 ? args_.op.expert_ids.data[item.group] : groups_.expert[item.group];
        weight.data += expert * weights_.expert_bytes;
        item.rows = LaneRows(weight, item.first);
        return true;
      }
      if (round_ >= 2) return false;
    }
  }

 private:
  const GateUpArgs& args_;
  const ExpertGroups& groups_;
  int num_items_;
  const ExpertWeightView& weights_;
  int round_ = 0;
};

// Grid: CTAs that stay. At most kRows rows.
template <DType kDType, int kRows>
__global__ __launch_bounds__(kExpertThreads, kRows <= 4 ? 3 : 2) void gate_up_kernel(
    const __grid_constant__ GateUpArgs args) {
  constexpr int kSharedQuads = num_quads(kRows);
  constexpr int kCols = kRows == 1 ? 1 : kQuadRows;  // of a routed tile
  extern __shared__ __align__(128) std::byte dynamic[];
  __shared__ float sums[2][kExpertWarps * kExpertTile * kRows];
  __shared__ ExpertGroups groups;

  const ExpertsArgs& op = args.op;
  const int warp = threadIdx.x / kWarpLanes;
  const bool takes_up = warp >= 4;
  auto* tables = reinterpret_cast<DotTables*>(dynamic);
  if constexpr (needs_tables<kDType>()) fill_tables<kExpertThreads>(*tables);
  pdl_wait();
  pdl_launch_dependents();

  const auto top_k = static_cast<int>(op.expert_ids.cols);
  if constexpr (kRows > 1) {
    build_groups<kExpertThreads>(
        op.expert_ids.data, op.expert_ids.stride, args.num_rows, top_k, groups);
  }
  RoutedItems<kDType, kRows> items(
      args, groups, kRows == 1 ? top_k : groups.count, takes_up ? op.up : op.gate);
  const ColRange cols = gate_up_range(kDType, op.gate.first.cols);
  GateUpItem item;
  bool has_item = items.next(item);
  constexpr bool kReadsAhead = kDType == DType::kIQ2_XXS;
  Iq2Block ahead;
  Iq2Cursor cursor;
  // Of the first block of the item's weights for this warp; of nothing if there is none.
  const auto cursor_of = [&](const GateUpItem& of, bool is_item) {
    if (!is_item || cols.begin >= cols.end) return Iq2Cursor();
    return Iq2Cursor{of.rows.low, of.rows.high, cols.begin / 256};
  };
  if constexpr (kReadsAhead) {
    cursor = cursor_of(item, has_item);
    if (cursor.has_block()) cursor.load(static_cast<int>(op.x.cols), ahead);
  }

  CodeRows rows;
  if constexpr (kRows == 1) {
    rows = code_rows_at(dynamic + table_bytes<kDType>(), 1, op.x.cols);
    pack_code_row<kExpertThreads>(op.x.data, rows, 0);
    __syncthreads();
  } else {
    rows = code_rows_at(const_cast<std::byte*>(args.packed), args.num_rows, op.x.cols);
  }

  int buffer = 0;
  const auto shared_x = code_lane<kSharedQuads>(rows, args.num_rows);
  const ColRange shared_cols = gate_up_range(DType::kQ8_0, op.shared_gate.cols);
  for (int i = blockIdx.x; i < args.shared_items; i += gridDim.x, buffer ^= 1) {
    const WeightView& weight = takes_up ? op.shared_up : op.shared_gate;
    const int first = i * kExpertTile;
    const LaneRows lane_rows(weight, first);
    float acc[kSharedQuads][2] = {};
    tile_dot<DType::kQ8_0, kSharedQuads>(
        lane_rows.low, lane_rows.high, static_cast<int>(weight.cols), shared_cols.begin,
        shared_cols.end, shared_x, acc, tables);
    store_tile<kSharedQuads, kRows>(acc, sums[buffer] + warp * kExpertTile * kRows);
    __syncthreads();
    for (int k = threadIdx.x; k < kExpertTile * args.num_rows; k += kExpertThreads) {
      const int t = k / kExpertTile;
      const int row = k % kExpertTile;
      if (first + row >= weight.rows) continue;
      store_activation<kRows>(
          sums[buffer], row, t, op.shared_swiglu_limit, 1.0f,
          args.middle.row(t * (top_k + 1) + top_k) + first + row);
    }
  }
  while (has_item) {
    const GateUpItem own = item;
    has_item = items.next(item);
    const int num_pairs = kRows == 1 ? 1 : groups.num_pairs[own.group];
    const auto row_of = [&](int i) {
      return kRows == 1 ? 0 : static_cast<int>(groups.row[own.group][min(i, num_pairs - 1)]);
    };
    const auto x = code_lane<1>(rows, row_of);
    float acc[1][2] = {};
    if constexpr (kReadsAhead) {
      dot_iq2_xxs<1>(
          static_cast<int>(op.x.cols), cols.begin, cols.end, x, acc, *tables, cursor, ahead,
          cursor_of(item, has_item));
    } else {
      tile_dot<kDType, 1>(
          own.rows.low, own.rows.high, static_cast<int>(op.x.cols), cols.begin, cols.end, x, acc,
          tables);
    }
    store_tile<1, kCols>(acc, sums[buffer] + warp * kExpertTile * kCols);
    __syncthreads();
    for (int k = threadIdx.x; k < kExpertTile * num_pairs; k += kExpertThreads) {
      const int row = k % kExpertTile;
      if (own.first + row >= op.gate.first.rows) continue;
      const int i = k / kExpertTile;
      const int t = kRows == 1 ? 0 : groups.row[own.group][i];
      const int to = kRows == 1 ? own.group : groups.middle_row[own.group][i];
      store_activation<kCols>(
          sums[buffer], row, i, op.swiglu_limit, op.expert_weights.row(t)[to - t * (top_k + 1)],
          args.middle.row(to) + own.first + row);
    }
    buffer ^= 1;
  }
}

}  // namespace tandem::cuda
