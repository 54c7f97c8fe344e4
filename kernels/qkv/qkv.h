#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/step_rows.h"
#include "kernels/core/views.h"
#include "model/formats/row_rounding.h"

namespace tandem {

struct QkvArgs {
  StepRows step;
  ConstRows x;          // [n, hidden_dim], normed
  WeightView q_a;       // [q_lora_rank, hidden_dim]
  VectorView q_a_norm;  // [q_lora_rank]
  WeightView q_b;       // [num_heads * head_dim, q_lora_rank]
  WeightView kv;        // [head_dim, hidden_dim]
  VectorView kv_norm;   // [head_dim]
  Rows q_latent;        // [n, q_lora_rank]
  Rows q;               // [n, num_heads * head_dim]
  Rows kv_row;          // [n, head_dim], key and value at once
  RotaryView rotary;    // the last rotary.dim values of a head
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  float rms_eps = 1e-6f;
  RowRounding rounding = RowRounding::kNone;  // of kv_row; kNone or kFp8
};

/// q_latent = rms_norm(q_a x, q_a_norm);  q = q_b q_latent, each head divided by its root mean
/// square, its tail rotated by pos;  kv_row = rms_norm(kv x, kv_norm), tail rotated, the rest
/// rounded.
///
/// Types:  weights as linear() takes them; values f32.
/// Limits: rotary.dim <= head_dim, both even; kFp8 needs (head_dim - rotary.dim) % 64 == 0.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   the three weights read once for each batch.
Status qkv(const Exec& exec, const QkvArgs& args);

}  // namespace tandem
