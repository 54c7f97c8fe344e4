#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/views.h"

namespace tandem {

struct HcPostArgs {
  Rows streams;      // [n, s * hidden_dim], replaced
  ConstRows branch;  // [n, hidden_dim]
  ConstRows mix;     // [n, s + s * s], as hc_pre writes it
  int64_t num_streams = 4;
};

/// streams'[k] = post[k] * branch + sum_j comb[j][k] * streams[j]
///
/// Types:  f32. The sum over j runs in ascending order.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   streams read and written once.
Status hc_post(const Exec& exec, const HcPostArgs& args);

}  // namespace tandem
