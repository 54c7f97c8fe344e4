#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/views.h"

namespace tandem {

struct ExpertsArgs {
  ConstRows x;                        // [n, hidden_dim], normed
  ConstIntRows expert_ids;            // [n, top_k], distinct within a row
  ConstRows expert_weights;           // [n, top_k]
  ExpertWeightView gate, up;          // [num_experts][expert_dim, hidden_dim]
  ExpertWeightView down;              // [num_experts][hidden_dim, expert_dim]
  WeightView shared_gate, shared_up;  // [shared_dim, hidden_dim]
  WeightView shared_down;             // [hidden_dim, shared_dim]
  Rows out;                           // [n, hidden_dim]
  float swiglu_limit = 0;
  float shared_swiglu_limit = 0;
};

/// out = sum_k expert_k(x, w_k) + shared(x, 1), summed in the order of expert_ids, shared last:
///   g = min(gate x, limit);  u = clamp(up x, -limit, limit)
///   expert(x, w) = down (silu(g) * u * w)
///
/// Types:  weights as linear() takes them; gate and up share a type.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   each chosen expert's weights read once for each batch.
Status experts(const Exec& exec, const ExpertsArgs& args);

}  // namespace tandem
