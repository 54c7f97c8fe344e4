#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/step_rows.h"
#include "kernels/core/views.h"
#include "model/formats/row_rounding.h"

namespace tandem {

struct IndexSelectArgs {
  StepRows step;
  ConstRows x;         // [n, hidden_dim], normed
  ConstRows q_latent;  // [n, q_lora_rank], as qkv writes it
  WeightView q_b;      // [num_heads * head_dim, q_lora_rank]
  WeightView weights;  // [num_heads, hidden_dim]
  SlabView rows;       // [context / ratio] indexer rows of head_dim values
  RotaryView rotary;   // the last rotary.dim values of a head
  IntRows selection;   // [n, top_k]
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t ratio = 4;
  int64_t top_k = 0;
  RowRounding rounding = RowRounding::kNone;  // of the queries; kNone or kHadamardFp4
};

/// The indices of the compressed rows that a row may attend to, of the count = (pos + 1) / ratio
/// visible ones:
///   score[t] = sum_h max(0, q_h . row_t) w_h,  w = (weights x) / sqrt(head_dim * num_heads)
/// selection holds the min(top_k, count) highest scores' indices, ascending, then -1. Of equal
/// scores the lower index wins. With count <= top_k it is 0, 1, ..., count - 1 and nothing is
/// scored.
///
/// Types:  f32 scores, also under kFast (the queries' projection may use int8).
/// Limits: top_k >= 1.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   count rows read for each query.
Status index_select(const Exec& exec, const IndexSelectArgs& args);

}  // namespace tandem
