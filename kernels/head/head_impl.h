#pragma once

#include "kernels/head/head.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status head_cpu(const Exec& exec, const HeadArgs& args);  // float32, the reference
Status head_fast(const Exec& exec, const HeadArgs& args);
Status head_cuda(const Exec& exec, const HeadArgs& args);

}  // namespace tandem::detail
