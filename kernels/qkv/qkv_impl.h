#pragma once

#include "kernels/qkv/qkv.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status qkv_cpu(const Exec& exec, const QkvArgs& args);  // float32, the reference
Status qkv_fast(const Exec& exec, const QkvArgs& args);
Status qkv_cuda(const Exec& exec, const QkvArgs& args);

}  // namespace tandem::detail
