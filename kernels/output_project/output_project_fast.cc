#include "kernels/output_project/output_project_impl.h"

namespace tandem::detail {

Status output_project_fast(const Exec& exec, const OutputProjectArgs& args) {
  return output_project_cpu(exec, args);
}

}  // namespace tandem::detail
