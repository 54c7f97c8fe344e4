#pragma once

#include "kernels/output_project/output_project.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status output_project_cpu(
    const Exec& exec, const OutputProjectArgs& args);  // float32, the reference
Status output_project_fast(const Exec& exec, const OutputProjectArgs& args);
Status output_project_cuda(const Exec& exec, const OutputProjectArgs& args);

}  // namespace tandem::detail
