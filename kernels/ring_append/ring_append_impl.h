#pragma once

#include "kernels/ring_append/ring_append.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status ring_append_cpu(const Exec& exec, const RingAppendArgs& args);  // float32, the reference
Status ring_append_fast(const Exec& exec, const RingAppendArgs& args);
Status ring_append_cuda(const Exec& exec, const RingAppendArgs& args);

}  // namespace tandem::detail
