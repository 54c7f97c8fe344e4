#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/step_rows.h"
#include "kernels/core/views.h"
#include "model/formats/row_rounding.h"

namespace tandem {

inline constexpr int64_t kCompressRatioMax = 128;

/// Values that a token contributes to u, and again to g.
constexpr int64_t compress_width(int64_t ratio, int64_t row_dim) {
  return (ratio == 4 ? 2 : 1) * row_dim;
}
/// Tokens that a pooled row looks at.
constexpr int64_t compress_span(int64_t ratio) {
  return ratio == 4 ? 2 * ratio : ratio;
}

struct CompressArgs {
  StepRows step;
  ConstRows x;       // [n, hidden_dim], normed
  WeightView kv;     // [c * row_dim, hidden_dim]; c = 2 if ratio == 4 (overlapping windows), else 1
  WeightView gate;   // [c * row_dim, hidden_dim]
  WeightView ape;    // [ratio, c * row_dim]; row pos % ratio is added to the gate
  VectorView norm;   // [row_dim]
  Rows projected;    // [n, 2 * c * row_dim]: u = kv x, then g = gate x + ape
  SlabView history;  // ring of projected rows of earlier steps, row pos % capacity; read only
  SlabView rows;  // [context / ratio] pooled rows; row t is written when pos = ratio t + ratio - 1
  RotaryView rotary;  // the last rotary.dim values of a pooled row, at position ratio * t
  int64_t ratio = 0;  // 4 or any other divisor of kChunkGridTokens
  int64_t row_dim = 0;
  float rms_eps = 1e-6f;
  RowRounding rounding = RowRounding::kNone;
};

/// Projects every row and pools each window of `ratio` tokens that this step completes:
///   pooled[i] = sum_r softmax_r(g_r[i]) u_r[i], per channel i,
/// over the window's tokens (second halves of u and g if c == 2) and, if c == 2, the previous
/// window's (first halves; absent before position 0). Then rms_norm, rotation, rounding, and a
/// store. The caller appends `projected` to `history` afterwards (ring_append).
///
/// Types:  values f32; rows as the slab's dtype.
/// Limits: history.capacity_rows >= c * ratio - 1.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   kv and gate read once for each batch.
Status compress(const Exec& exec, const CompressArgs& args);

}  // namespace tandem
