#include "kernels/hc_post/hc_post.h"

#include "kernels/core/require.h"
#include "kernels/hc_post/hc_post_impl.h"
#include "kernels/hc_pre/hc_pre.h"

namespace tandem {

Status hc_post(const Exec& exec, const HcPostArgs& args) {
  const int64_t s = args.num_streams;
  TANDEM_TRY(require_step_size("hc_post", args.streams.rows));
  TANDEM_REQUIRE(
      s >= 1 && s <= kHcStreamsMax,
      str_cat("hc_post: num_streams is ", s, ", needs 1 to ", kHcStreamsMax));
  TANDEM_TRY(
      require_rows("hc_post: streams", args.streams, args.branch.rows, s * args.branch.cols));
  TANDEM_TRY(require_rows("hc_post: mix", args.mix, args.branch.rows, s + s * s));
  if (args.streams.rows == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::hc_post_cpu(exec, args)
                                               : detail::hc_post_fast(exec, args);
    case Device::kCuda: return detail::hc_post_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
