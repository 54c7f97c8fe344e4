#pragma once

#include "kernels/index_select/index_select.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status index_select_cpu(const Exec& exec, const IndexSelectArgs& args);  // float32, the reference
Status index_select_fast(const Exec& exec, const IndexSelectArgs& args);
Status index_select_cuda(const Exec& exec, const IndexSelectArgs& args);

}  // namespace tandem::detail
