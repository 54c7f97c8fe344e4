#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/step_rows.h"
#include "kernels/core/views.h"

namespace tandem {

struct HeadArgs {
  StepRows step;
  ConstRows streams;  // [n, s * hidden_dim]; s = num_streams
  WeightView fn;      // [s, s * hidden_dim], F32 or F16
  VectorView scale;   // [1]
  VectorView base;    // [s]
  VectorView norm;    // [hidden_dim]
  WeightView output;  // [vocab, hidden_dim]
  Rows logits;        // [step.num_logits, vocab]
  int64_t num_streams = 4;
  float hc_eps = 1e-6f;
  float rms_eps = 1e-6f;
};

/// Logits of the rows in step.logit_rows:
///   pre[j] = sigmoid((fn x)[j] / sqrt(mean(x^2) + rms_eps) * scale[0] + base[j]) + hc_eps
///   logits = output rms_norm(sum_j pre[j] x_j, norm)
///
/// Types:  output as linear() takes it; the rest f32.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   output read once for each batch.
Status head(const Exec& exec, const HeadArgs& args);

}  // namespace tandem
