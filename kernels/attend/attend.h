#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/step_rows.h"
#include "kernels/core/views.h"

namespace tandem {

struct AttendArgs {
  StepRows step;
  ConstRows q;               // [n, num_heads * head_dim]
  ConstRows kv_row;          // [n, head_dim]: this step's rows
  SlabView window_rows;      // ring of earlier steps' rows, row pos % capacity; read only
  SlabView compressed_rows;  // [context / ratio]; data == nullptr: none
  ConstIntRows selection;    // [n, top_k] ascending, -1 ends it; data == nullptr: every visible row
  VectorView sinks;          // [num_heads]
  RotaryView rotary;
  Rows out;  // [n, num_heads * head_dim]
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;  // positions max(0, pos - window + 1) ... pos are visible
  int64_t ratio = 0;   // compressed row t is visible if t < (pos + 1) / ratio
};

/// One query row against its window and its compressed rows, which serve as key and value:
///   s_j = q_h . row_j / sqrt(head_dim);  p_j = e^{s_j} / (sum_i e^{s_i} + e^{sinks[h]})
///   out_h = sum_j p_j row_j, its last rotary.dim values rotated back by pos.
/// Rows are taken window first, oldest to newest, then compressed, ascending.
///
/// Types:  f32 arithmetic under kExact. Rows as their slab's dtype holds them, this step's own too,
/// so
///         that a result does not depend on how a sequence was cut into steps.
/// Limits: window_rows.capacity_rows >= window - 1.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   4 * num_heads * head_dim FLOP for each visible row.
Status attend(const Exec& exec, const AttendArgs& args);

}  // namespace tandem
