#include "kernels/ring_append/ring_append.h"

#include "kernels/core/require.h"
#include "kernels/ring_append/ring_append_impl.h"

namespace tandem {

Status ring_append(const Exec& exec, const RingAppendArgs& args) {
  TANDEM_TRY(require_step_size("ring_append", args.step.num_rows));
  TANDEM_TRY(require_slab("ring_append: ring", args.ring, args.value.cols));
  TANDEM_TRY(
      require_rows("ring_append: value", args.value, args.step.num_rows, args.ring.row_values));
  if (args.step.num_rows == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::ring_append_cpu(exec, args)
                                               : detail::ring_append_fast(exec, args);
    case Device::kCuda: return detail::ring_append_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
