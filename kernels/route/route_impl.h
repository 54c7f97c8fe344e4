#pragma once

#include "kernels/route/route.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status route_cpu(const Exec& exec, const RouteArgs& args);  // float32, the reference
Status route_fast(const Exec& exec, const RouteArgs& args);
Status route_cuda(const Exec& exec, const RouteArgs& args);

}  // namespace tandem::detail
