#include "kernels/linear/gemv.h"
#include "kernels/linear/linear_impl.h"

namespace tandem::detail {

Status linear_cuda(const Exec& exec, const LinearArgs& args) {
  const cuda::GemvPart part = {args.x, args.weight, args.out};
  return cuda::gemv(exec, {&part, 1});
}

}  // namespace tandem::detail
