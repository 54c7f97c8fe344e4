#pragma once

#include "kernels/attend/attend.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status attend_cpu(const Exec& exec, const AttendArgs& args);  // float32, the reference
Status attend_fast(const Exec& exec, const AttendArgs& args);
Status attend_cuda(const Exec& exec, const AttendArgs& args);

}  // namespace tandem::detail
