#pragma once

#include "kernels/experts/experts.h"

namespace tandem::detail {

/// experts() for many rows on CUDA: grouped by expert, on the tensor cores.
Status experts_prefill_cuda(const Exec& exec, const ExpertsArgs& args);

}  // namespace tandem::detail
