#include "kernels/cuda/regime.h"
#include "kernels/gemm/gemm.h"
#include "kernels/linear/gemv.h"
#include "kernels/linear/linear_impl.h"

namespace tandem::detail {

Status linear_cuda(const Exec& exec, const LinearArgs& args) {
  if (cuda::is_prefill(exec) && cuda::gemm_takes(args.weight)) {
    return cuda::gemm_linear(exec, args.x, args.weight, args.out);
  }
  const cuda::GemvPart part = {args.x, args.weight, args.out};
  return cuda::gemv(exec, {&part, 1});
}

}  // namespace tandem::detail
