#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/views.h"

namespace tandem {

struct OutputProjectArgs {
  ConstRows heads;  // [n, g * group_dim]; g = num_groups
  WeightView o_a;   // [g * rank, group_dim]; group i owns rows i * rank ...
  WeightView o_b;   // [hidden_dim, g * rank]
  Rows out;         // [n, hidden_dim]
  int64_t num_groups = 1;
};

/// out = o_b concat_i(o_a[i] heads[i])
///
/// Types:  weights as linear() takes them.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   both weights read once for each batch.
Status output_project(const Exec& exec, const OutputProjectArgs& args);

}  // namespace tandem
