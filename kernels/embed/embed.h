#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/step_rows.h"
#include "kernels/core/views.h"

namespace tandem {

struct EmbedArgs {
  StepRows step;
  WeightView table;         // [vocab, hidden_dim]
  int64_t num_streams = 1;  // 1 to 8
  Rows streams;             // [n, num_streams * hidden_dim]
};

/// streams[t, s * hidden_dim + i] = table[token[t], i] for every stream s.
///
/// Types:  table F32, F16, BF16, Q8_0 or any other DType but kI32.
/// Limits: 0 <= token < vocab is checked by the caller.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   num_streams * hidden_dim * 4 bytes written for each row.
Status embed(const Exec& exec, const EmbedArgs& args);

}  // namespace tandem
