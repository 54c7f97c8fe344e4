#pragma once

#include "kernels/linear/linear.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status linear_cpu(const Exec& exec, const LinearArgs& args);  // float32, the reference
Status linear_fast(const Exec& exec, const LinearArgs& args);
Status linear_cuda(const Exec& exec, const LinearArgs& args);

}  // namespace tandem::detail
