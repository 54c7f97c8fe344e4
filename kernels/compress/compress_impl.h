#pragma once

#include "kernels/compress/compress.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status compress_cpu(const Exec& exec, const CompressArgs& args);  // float32, the reference
Status compress_fast(const Exec& exec, const CompressArgs& args);
Status compress_cuda(const Exec& exec, const CompressArgs& args);

}  // namespace tandem::detail
