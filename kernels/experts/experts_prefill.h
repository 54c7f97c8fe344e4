#pragma once

#include "kernels/experts/experts.h"

namespace tandem::detail {

/// experts() for many rows on CUDA: grouped by expert, on the tensor cores.
/// Limits: experts_prefill_takes(args).
bool experts_prefill_takes(const ExpertsArgs& args);
Status experts_prefill_cuda(const Exec& exec, const ExpertsArgs& args);

}  // namespace tandem::detail
