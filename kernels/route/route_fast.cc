#include "kernels/route/route_impl.h"

namespace tandem::detail {

Status route_fast(const Exec& exec, const RouteArgs& args) {
  return route_cpu(exec, args);
}

}  // namespace tandem::detail
