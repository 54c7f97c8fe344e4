#include "kernels/head/head.h"

#include "kernels/core/require.h"
#include "kernels/hc_pre/hc_pre.h"
#include "kernels/head/head_impl.h"

namespace tandem {

Status head(const Exec& exec, const HeadArgs& args) {
  const int64_t n = args.step.num_logits;
  const int64_t s = args.num_streams;
  TANDEM_TRY(require_step_size("head", n));
  TANDEM_REQUIRE(
      s >= 1 && s <= kHcStreamsMax,
      str_cat("head: num_streams is ", s, ", needs 1 to ", kHcStreamsMax));
  TANDEM_TRY(require_rows("head: streams", args.streams, args.step.num_rows, s * args.norm.size));
  TANDEM_TRY(require_weight("head: fn", args.fn, s, args.streams.cols));
  TANDEM_TRY(require_vector("head: scale", args.scale, 1));
  TANDEM_TRY(require_vector("head: base", args.base, s));
  TANDEM_TRY(require_weight("head: output", args.output, args.logits.cols, args.norm.size));
  TANDEM_TRY(require_rows("head: logits", args.logits, n, args.output.rows));
  if (n == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::head_cpu(exec, args)
                                               : detail::head_fast(exec, args);
    case Device::kCuda: return detail::head_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
