#include "kernels/attend/attend.h"

#include "kernels/attend/attend_impl.h"
#include "kernels/core/require.h"

namespace tandem {

Status attend(const Exec& exec, const AttendArgs& args) {
  const int64_t n = args.step.num_rows;
  const int64_t width = args.num_heads * args.head_dim;
  TANDEM_TRY(require_step_size("attend", n));
  TANDEM_REQUIRE(args.window >= 1, str_cat("attend: window is ", args.window));
  TANDEM_TRY(require_rows("attend: q", args.q, n, width));
  TANDEM_TRY(require_rows("attend: kv_row", args.kv_row, n, args.head_dim));
  TANDEM_TRY(require_rows("attend: out", args.out, n, width));
  TANDEM_TRY(require_rotary("attend: rotary", args.rotary, args.head_dim));
  TANDEM_TRY(require_vector("attend: sinks", args.sinks, args.num_heads));
  TANDEM_TRY(require_slab("attend: window_rows", args.window_rows, args.head_dim));
  TANDEM_REQUIRE(
      args.window_rows.capacity_rows >= args.window - 1,
      str_cat("attend: the ring keeps ", args.window_rows.capacity_rows, " rows"));
  if (args.compressed_rows.data != nullptr) {
    TANDEM_TRY(require_slab("attend: compressed_rows", args.compressed_rows, args.head_dim));
    TANDEM_REQUIRE(args.ratio >= 1, str_cat("attend: ratio is ", args.ratio));
  }
  if (args.selection.data != nullptr) {
    TANDEM_TRY(require_rows("attend: selection", args.selection, n, args.selection.cols));
    TANDEM_REQUIRE(
        args.compressed_rows.data != nullptr, "attend: a selection needs compressed_rows");
  }
  if (n == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::attend_cpu(exec, args)
                                               : detail::attend_fast(exec, args);
    case Device::kCuda: return detail::attend_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
