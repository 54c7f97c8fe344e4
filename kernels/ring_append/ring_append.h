#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/step_rows.h"
#include "kernels/core/views.h"

namespace tandem {

struct RingAppendArgs {
  StepRows step;
  ConstRows value;  // [n, row_values]
  SlabView ring;
};

/// Stores each row at ring row pos % capacity of its bank. Of rows of one segment that share a ring
/// row, the latest is kept.
///
/// Types:  rounds to the slab's dtype.
/// Errors: kInvalidArgument for a shape mismatch.
/// Cost:   min(n, capacity) rows written.
Status ring_append(const Exec& exec, const RingAppendArgs& args);

}  // namespace tandem
