#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/views.h"

struct __half;  // of cuda_fp16.h

namespace tandem::cuda {

// Matrix products for prefill: many rows x against weights in any format, on the tensor cores. Both
// operands are rounded to f16 (weights: one rounding of the dequantised value), sums are f32 and
// run over k in ascending steps of 16, so that a result depends neither on the other rows nor on
// the tiles. Shared rule of the arguments: k is a multiple of 32 and of the weight's block.

/// Rows of f16 [rows, k] in fragment order: within each 32 values, value 8 c + 4 s + 2 h + e is at
/// 16 s + 8 h + 2 c + e. A thread's eight consecutive weight values then meet the values that the
/// matrix instruction pairs them with. stride is in values, a multiple of 8.
struct FragmentRows {
  __half* data = nullptr;
  int64_t rows = 0;
  int64_t k = 0;
  int64_t stride = 0;
};

/// Where value `idx` of a row is in fragment order.
constexpr int64_t fragment_position(int64_t idx) {
  return (idx & ~int64_t{31}) + 16 * ((idx >> 2) & 1) + 8 * ((idx >> 1) & 1) +
         2 * ((idx >> 3) & 3) + (idx & 1);
}

/// Takes scratch memory for x as f16 and queues the conversion; too large values become 65504.
/// Errors: kInternal if the launch fails.
Status to_fragment_rows(const Exec& exec, ConstRows x, FragmentRows& out);

/// out[t, i] = sum_j weight[i, j] x[t, j]. With num_groups > 1, weight rows split evenly in groups
/// and group g reads x[t, g k ...].
struct GemmArgs {
  FragmentRows x;  // [n, num_groups * weight.cols]
  WeightView weight;
  int64_t num_groups = 1;
  Rows out;               // [n, weight.rows], or
  FragmentRows out_half;  // the same, for the next product; weight.rows a multiple of 32
};
Status gemm(const Exec& exec, const GemmArgs& args);

/// Rows sorted by expert: sorted row i is slot order[i], row order[i] / top_k of the step; expert e
/// owns sorted rows offsets[e] ... offsets[e + 1]. Device memory.
struct ExpertOrder {
  const int32_t* order = nullptr;    // [num_slots]
  const int32_t* offsets = nullptr;  // [num_experts + 1]
  int64_t num_slots = 0;             // n * top_k
  int64_t num_experts = 0;
  int64_t top_k = 1;
};
/// Takes scratch memory for the order and queues the sort; slots keep their order in an expert.
Status sort_by_expert(
    const Exec& exec, ConstIntRows expert_ids, int64_t num_experts, ExpertOrder& out);

/// hidden[r] = silu(min(gate x, limit)) clamp(up x, -limit, limit) w. Without `order`: rows of x
/// and w == 1, gate and up being expert 0. With it: r is a sorted row, w its slot's weight.
struct GateUpArgs {
  FragmentRows x;
  ExpertWeightView gate, up;
  const ExpertOrder* order = nullptr;
  ConstRows slot_weights;  // [n, top_k]; slot t * top_k + k is [t, k]
  float limit = 0;
  FragmentRows hidden;  // [n or num_slots, gate rows], a multiple of 32
};
Status gemm_gate_up(const Exec& exec, const GateUpArgs& args);

/// out[order[r]] = down hidden[r] for sorted rows r.
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

}  // namespace tandem::cuda
