#include "kernels/linear/linear.h"

#include "kernels/core/require.h"
#include "kernels/linear/linear_impl.h"

namespace tandem {

Status linear(const Exec& exec, const LinearArgs& args) {
  TANDEM_TRY(require_step_size("linear", args.x.rows));
  TANDEM_TRY(require_weight("linear: weight", args.weight, args.out.cols, args.x.cols));
  TANDEM_TRY(require_rows("linear: out", args.out, args.x.rows, args.weight.rows));
  TANDEM_REQUIRE(args.weight.dtype != DType::kI32, "linear: weight is I32");
  if (args.x.rows == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::linear_cpu(exec, args)
                                               : detail::linear_fast(exec, args);
    case Device::kCuda: return detail::linear_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
