#pragma once

#include "kernels/attend/attend.h"

namespace tandem::detail {

/// attend() on CUDA for any head_dim, in float32 and much slower than for the models' 512.
Status attend_any_cuda(const Exec& exec, const AttendArgs& args);

}  // namespace tandem::detail
