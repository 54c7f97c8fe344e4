#include "kernels/index_select/index_select_impl.h"

namespace tandem::detail {

Status index_select_fast(const Exec& exec, const IndexSelectArgs& args) {
  return index_select_cpu(exec, args);
}

}  // namespace tandem::detail
