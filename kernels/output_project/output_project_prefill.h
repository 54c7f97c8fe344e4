#pragma once

#include "kernels/output_project/output_project.h"

namespace tandem::detail {

/// output_project() for many rows on CUDA, on the tensor cores.
/// Limits: output_project_prefill_takes(args).
bool output_project_prefill_takes(const OutputProjectArgs& args);
Status output_project_prefill_cuda(const Exec& exec, const OutputProjectArgs& args);

}  // namespace tandem::detail
