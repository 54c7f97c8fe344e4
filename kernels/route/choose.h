#pragma once

#include "kernels/route/route.h"

namespace tandem::detail {

/// The experts of row t and their weights from gate x [num_experts], which is replaced by the
/// scores.
void choose_experts(const RouteArgs& args, int64_t t, float* scores);

}  // namespace tandem::detail
