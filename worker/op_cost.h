#pragma once

#include <cstdint>

#include "kernels/core/step_rows.h"
#include "worker/executor.h"

namespace tandem {

/// What an operation has to do for one step, whoever does it.
struct OpCost {
  int64_t weight_bytes = 0;  // each weight that the step needs, once
  int64_t state_bytes = 0;   // slab rows that it reads
  int64_t macs = 0;          // multiply-adds of its products and of attention
};

/// Cost of one operation over the rows of `step` (arrays in host memory). Experts count as if all
/// rows chose different ones, as far as there are experts.
OpCost op_cost(const Op& op, const ExecutorParts& parts, const StepRows& step);

}  // namespace tandem
