#pragma once

#include "kernels/hc_pre/hc_pre.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status hc_pre_cpu(const Exec& exec, const HcPreArgs& args);  // float32, the reference
Status hc_pre_fast(const Exec& exec, const HcPreArgs& args);
Status hc_pre_cuda(const Exec& exec, const HcPreArgs& args);

}  // namespace tandem::detail
