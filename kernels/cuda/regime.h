#pragma once

#include "kernels/core/exec.h"

namespace tandem::cuda {

/// Whether products run on the tensor cores and work is split over rows, not over the context.
constexpr bool is_prefill(const Exec& exec) {
  return exec.numerics == Numerics::kFast && exec.phase == Phase::kPrefill;
}

}  // namespace tandem::cuda
