#include "kernels/hc_pre/hc_pre.h"

#include "kernels/core/require.h"
#include "kernels/hc_pre/hc_pre_impl.h"

namespace tandem {

Status detail::check_hc_pre(const HcPreArgs& args) {
  const int64_t s = args.num_streams;
  const int64_t num_mix = 2 * s + s * s;
  TANDEM_TRY(require_step_size("hc_pre", args.streams.rows));
  TANDEM_REQUIRE(
      s >= 1 && s <= kHcStreamsMax,
      str_cat("hc_pre: num_streams is ", s, ", needs 1 to ", kHcStreamsMax));
  TANDEM_REQUIRE(args.sinkhorn_iterations >= 1, "hc_pre: sinkhorn_iterations is below 1");
  TANDEM_REQUIRE(
      args.fn.dtype == DType::kF32 || args.fn.dtype == DType::kF16,
      str_cat("hc_pre: fn is ", dtype_name(args.fn.dtype), ", needs F32 or F16"));
  TANDEM_TRY(require_rows("hc_pre: streams", args.streams, args.streams.rows, s * args.norm.size));
  TANDEM_TRY(require_weight("hc_pre: fn", args.fn, num_mix, args.streams.cols));
  TANDEM_TRY(require_vector("hc_pre: scale", args.scale, 3));
  TANDEM_TRY(require_vector("hc_pre: base", args.base, num_mix));
  TANDEM_TRY(require_rows("hc_pre: normed", args.normed, args.streams.rows, args.norm.size));
  return require_rows("hc_pre: mix", args.mix, args.streams.rows, s + s * s);
}

Status hc_pre(const Exec& exec, const HcPreArgs& args) {
  TANDEM_TRY(detail::check_hc_pre(args));
  if (args.streams.rows == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::hc_pre_cpu(exec, args)
                                               : detail::hc_pre_fast(exec, args);
    case Device::kCuda: return detail::hc_pre_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
