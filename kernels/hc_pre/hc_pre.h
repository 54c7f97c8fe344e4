#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/views.h"

namespace tandem {

inline constexpr int64_t kHcStreamsMax = 8;

struct HcPreArgs {
  ConstRows streams;  // [n, s * hidden_dim], stream-major; s = num_streams
  WeightView fn;      // [2 s + s * s, s * hidden_dim], F32 or F16
  VectorView scale;   // [3]
  VectorView base;    // [2 s + s * s]
  VectorView norm;    // [hidden_dim]
  Rows normed;        // [n, hidden_dim]
  Rows mix;           // [n, s + s * s]: post[k], then comb[j][k], source stream j, target k
  int64_t num_streams = 4;
  int32_t sinkhorn_iterations = 20;  // >= 1
  float hc_eps = 1e-6f;
  float rms_eps = 1e-6f;
};

/// The mixing coefficients of a hyper-connection and the branch input, normed:
///   m = (fn x) / sqrt(mean(x^2) + rms_eps),  x = streams[t]
///   pre[j]  = sigmoid(m[j] scale[0] + base[j]) + hc_eps
///   post[k] = 2 sigmoid(m[s + k] scale[1] + base[s + k])
///   comb    = Sinkhorn(m[2s + s j + k] scale[2] + base[2s + s j + k])
///   normed  = rms_norm(sum_j pre[j] x_j, norm)
/// Sinkhorn: a row softmax plus hc_eps, columns divided by (sum + hc_eps); then,
/// sinkhorn_iterations - 1 times, rows and columns divided by (sum + hc_eps).
///
/// Types:  f32 throughout, also under kFast.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   streams read once, fn read once for each batch.
/// Source: Xie et al. 2025, "mHC: Manifold-Constrained Hyper-Connections".
Status hc_pre(const Exec& exec, const HcPreArgs& args);

}  // namespace tandem
