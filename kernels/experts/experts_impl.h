#pragma once

#include "kernels/experts/experts.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status experts_cpu(const Exec& exec, const ExpertsArgs& args);  // float32, the reference
Status experts_fast(const Exec& exec, const ExpertsArgs& args);
Status experts_cuda(const Exec& exec, const ExpertsArgs& args);

}  // namespace tandem::detail
