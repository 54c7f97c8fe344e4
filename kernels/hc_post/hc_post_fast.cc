#include "kernels/hc_post/hc_post_impl.h"

namespace tandem::detail {

Status hc_post_fast(const Exec& exec, const HcPostArgs& args) {
  return hc_post_cpu(exec, args);
}

}  // namespace tandem::detail
