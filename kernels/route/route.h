#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/step_rows.h"
#include "kernels/core/views.h"

namespace tandem {

inline constexpr int64_t kRouteExpertsMax = 1024;
inline constexpr int64_t kRouteTopKMax = 16;

struct RouteArgs {
  StepRows step;
  ConstRows x;               // [n, hidden_dim], normed
  WeightView gate;           // [num_experts, hidden_dim], F32 or F16
  VectorView bias;           // [num_experts]; data == nullptr on a hash layer
  WeightView token_experts;  // [vocab, top_k] I32; data == nullptr on other layers
  IntRows expert_ids;        // [n, top_k]
  Rows expert_weights;       // [n, top_k]
  int64_t top_k = 0;
  float scale = 1;
};

/// s[e] = sqrt(softplus((gate x)[e])). Chosen: token_experts[token] in its order, or the top_k
/// highest s[e] + bias[e], highest first, the lower id of equal ones. expert_weights = scale * s /
/// max(sum of the chosen s, 2^-14).
///
/// Types:  f32 throughout, also under kFast.
/// Limits: num_experts <= kRouteExpertsMax, top_k <= kRouteTopKMax; ids in token_experts are
/// checked when the model is loaded. Errors: kInvalidArgument for a shape mismatch. Cost:   gate
/// read once for each batch.
Status route(const Exec& exec, const RouteArgs& args);

}  // namespace tandem
