#include "kernels/hc_pre/hc_pre_impl.h"

namespace tandem::detail {

Status hc_pre_fast(const Exec& exec, const HcPreArgs& args) {
  return hc_pre_cpu(exec, args);
}

}  // namespace tandem::detail
