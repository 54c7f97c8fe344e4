#pragma once

#include <array>

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/views.h"

struct __half;  // of cuda_fp16.h

namespace tandem::cuda {

// Matrix products for prefill: many rows x against weights in any format, on the tensor cores. Both
// operands are rounded to f16 (weights: one rounding of the dequantised value), sums are f32 and
// run over k in ascending steps of 16, so that a result depends neither on the other rows nor on
// the tiles. Shared rule of the arguments: k is a multiple of 32 and of the weight's block.

/// Rows of f16 [rows, k] as the kernels read them: blocks of 64 values, in a block all rows, so
/// that a tile of rows of one block is one piece of memory. In a row of a block,
///  - values are in fragment order: of each 32, value 8 c + 4 s + 2 h + e is at 16 s + 8 h + 2 c +
///  e.
///    A thread's eight consecutive weight values then meet the values that the matrix instruction
///    pairs them with;
///  - 16-byte part p is at p ^ (row % 8), against bank conflicts.
/// Past k the last block holds zeros. After the rows there is room for a tile.
struct FragmentRows {
  __half* data = nullptr;
  int64_t rows = 0;
  int64_t k = 0;
  int64_t block_rows = 0;  // rows from one block to the next

  /// Where value `idx` of `row` is.
  constexpr int64_t offset(int64_t row, int64_t idx) const {
    const int64_t part = (idx >> 5 & 1) * 4 + (idx >> 2 & 1) * 2 + (idx >> 1 & 1);
    return ((idx >> 6) * block_rows + row) * 64 + ((part ^ (row & 7)) << 3) + (idx >> 3 & 3) * 2 +
           (idx & 1);
  }
};

/// Takes scratch memory for rows to be written; zero past k.
Status take_fragment_rows(const Exec& exec, int64_t rows, int64_t k, FragmentRows& out);

/// Takes scratch memory for x as f16 and queues the conversion; too large values become 65504.
/// Errors: kInternal if the launch fails.
Status to_fragment_rows(const Exec& exec, ConstRows x, FragmentRows& out);

/// out[t, i] = sum_j weight[i, j] x[t, j]. With num_groups > 1, weight rows split evenly in groups
/// and group g reads x[t, g k ...].
struct GemmArgs {
  FragmentRows x;  // [n, num_groups * weight.cols]
  WeightView weight;
  int64_t num_groups = 1;  // > 1: weight.cols is a multiple of 64
  Rows out;                // [n, weight.rows], or
  FragmentRows out_half;   // the same, for the next product; weight.rows a multiple of 32
};
Status gemm(const Exec& exec, const GemmArgs& args);

/// Rows sorted by expert: sorted row r is slot order[r], the slot of [t, k] being t * top_k + k.
/// Expert e owns sorted rows begin[e] ... begin[e] + count[e]; begin is a multiple of 8, and what
/// lies between belongs to nobody (order < 0). Device memory.
struct ExpertOrder {
  const int32_t* order = nullptr;  // [num_sorted]
  const int32_t* begin = nullptr;  // [num_experts]
  const int32_t* count = nullptr;  // [num_experts]
  int64_t num_slots = 0;           // n * top_k
  int64_t num_sorted = 0;
  int64_t num_experts = 0;
  int64_t top_k = 1;
};
/// Takes scratch memory for the order and queues the sort; slots keep their order in an expert.
Status sort_by_expert(
    const Exec& exec, ConstIntRows expert_ids, int64_t num_experts, ExpertOrder& out);
/// Takes scratch memory for the rows of x in sorted order and queues the copy.
Status gather_sorted(
    const Exec& exec, const FragmentRows& x, const ExpertOrder& order, FragmentRows& out);

/// hidden[r] = silu(min(gate x, limit)) clamp(up x, -limit, limit) w. Without `order`: w == 1, gate
/// and up being expert 0. With it: r is a sorted row, w its slot's weight.
struct GateUpArgs {
  FragmentRows x;
  ExpertWeightView gate, up;
  const ExpertOrder* order = nullptr;
  ConstRows slot_weights;  // [n, top_k]; slot t * top_k + k is [t, k]
  float limit = 0;
  FragmentRows hidden;  // [x.rows, gate rows]
};
Status gemm_gate_up(const Exec& exec, const GateUpArgs& args);

/// out[order[r]] = down hidden[r] for sorted rows r that are somebody's.
struct ExpertDownArgs {
  FragmentRows hidden;
  ExpertWeightView down;
  const ExpertOrder* order = nullptr;
  Rows out;  // [num_slots, down rows]
};
Status gemm_expert_down(const Exec& exec, const ExpertDownArgs& args);

/// Whether the products above take weights of this shape.
constexpr bool gemm_takes(const WeightView& weight) {
  return weight.dtype != DType::kI32 && weight.cols % 32 == 0 && weight.row_bytes % 16 == 0;
}

/// linear() for many rows. Limits: gemm_takes(weight).
Status gemm_linear(const Exec& exec, ConstRows x, const WeightView& weight, Rows out);

struct LinearPart {
  WeightView weight;
  Rows out;
};
/// Two products of the same x.
Status gemm_linears(const Exec& exec, ConstRows x, const std::array<LinearPart, 2>& parts);

}  // namespace tandem::cuda
