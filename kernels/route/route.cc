#include "kernels/route/route.h"

#include "kernels/core/require.h"
#include "kernels/route/route_impl.h"

namespace tandem {

Status route(const Exec& exec, const RouteArgs& args) {
  const int64_t n = args.step.num_rows;
  TANDEM_TRY(require_step_size("route", n));
  TANDEM_REQUIRE(
      args.gate.dtype == DType::kF32 || args.gate.dtype == DType::kF16,
      str_cat("route: gate is ", dtype_name(args.gate.dtype), ", needs F32 or F16"));
  TANDEM_REQUIRE(
      args.gate.rows >= 1 && args.gate.rows <= kRouteExpertsMax,
      str_cat("route: ", args.gate.rows, " experts, at most ", kRouteExpertsMax));
  TANDEM_REQUIRE(
      args.top_k >= 1 && args.top_k <= kRouteTopKMax && args.top_k <= args.gate.rows,
      str_cat("route: top_k is ", args.top_k));
  TANDEM_TRY(require_rows("route: x", args.x, n, args.gate.cols));
  TANDEM_REQUIRE(
      (args.bias.data == nullptr) != (args.token_experts.data == nullptr),
      "route: needs one of bias and token_experts");
  if (args.bias.data != nullptr)
    TANDEM_TRY(require_vector("route: bias", args.bias, args.gate.rows));
  if (args.token_experts.data != nullptr) {
    TANDEM_REQUIRE(args.token_experts.dtype == DType::kI32, "route: token_experts is not I32");
    TANDEM_REQUIRE(
        args.token_experts.cols == args.top_k,
        str_cat("route: token_experts has ", args.token_experts.cols, " columns"));
  }
  TANDEM_TRY(require_rows("route: expert_ids", args.expert_ids, n, args.top_k));
  TANDEM_TRY(require_rows("route: expert_weights", args.expert_weights, n, args.top_k));
  if (n == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::route_cpu(exec, args)
                                               : detail::route_fast(exec, args);
    case Device::kCuda: return detail::route_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
