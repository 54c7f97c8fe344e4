#include "kernels/experts/experts.h"

#include "kernels/core/require.h"
#include "kernels/experts/experts_impl.h"

namespace tandem {

Status experts(const Exec& exec, const ExpertsArgs& args) {
  const int64_t n = args.x.rows;
  const int64_t hidden_dim = args.x.cols;
  const int64_t expert_dim = args.down.first.cols;
  const int64_t shared_dim = args.shared_down.cols;
  TANDEM_TRY(require_step_size("experts", n));
  TANDEM_REQUIRE(
      args.gate.experts == args.up.experts && args.gate.experts == args.down.experts,
      "experts: gate, up and down differ in number");
  TANDEM_TRY(require_weight("experts: gate", args.gate.first, expert_dim, hidden_dim));
  TANDEM_TRY(require_weight("experts: up", args.up.first, expert_dim, hidden_dim));
  TANDEM_TRY(require_weight("experts: down", args.down.first, hidden_dim, expert_dim));
  TANDEM_REQUIRE(
      args.gate.first.dtype == args.up.first.dtype, "experts: gate and up differ in type");
  TANDEM_TRY(require_weight("experts: shared_gate", args.shared_gate, shared_dim, hidden_dim));
  TANDEM_TRY(require_weight("experts: shared_up", args.shared_up, shared_dim, hidden_dim));
  TANDEM_TRY(require_weight("experts: shared_down", args.shared_down, hidden_dim, shared_dim));
  TANDEM_TRY(require_rows("experts: expert_ids", args.expert_ids, n, args.expert_weights.cols));
  TANDEM_TRY(
      require_rows("experts: expert_weights", args.expert_weights, n, args.expert_weights.cols));
  TANDEM_TRY(require_rows("experts: out", args.out, n, hidden_dim));
  if (n == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::experts_cpu(exec, args)
                                               : detail::experts_fast(exec, args);
    case Device::kCuda: return detail::experts_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
