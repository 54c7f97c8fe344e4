#include "kernels/qkv/qkv.h"

#include "kernels/core/require.h"
#include "kernels/qkv/qkv_impl.h"

namespace tandem {

Status qkv(const Exec& exec, const QkvArgs& args) {
  const int64_t n = args.step.num_rows;
  TANDEM_TRY(require_step_size("qkv", n));
  TANDEM_TRY(require_rows("qkv: x", args.x, n, args.q_a.cols));
  TANDEM_TRY(require_weight("qkv: q_a", args.q_a, args.q_a_norm.size, args.x.cols));
  TANDEM_TRY(
      require_weight("qkv: q_b", args.q_b, args.num_heads * args.head_dim, args.q_a_norm.size));
  TANDEM_TRY(require_weight("qkv: kv", args.kv, args.head_dim, args.x.cols));
  TANDEM_TRY(require_vector("qkv: kv_norm", args.kv_norm, args.head_dim));
  TANDEM_TRY(require_rows("qkv: q_latent", args.q_latent, n, args.q_a_norm.size));
  TANDEM_TRY(require_rows("qkv: q", args.q, n, args.num_heads * args.head_dim));
  TANDEM_TRY(require_rows("qkv: kv_row", args.kv_row, n, args.head_dim));
  TANDEM_TRY(require_rotary("qkv: rotary", args.rotary, args.head_dim));
  TANDEM_REQUIRE(
      args.rounding == RowRounding::kNone ||
          (args.rounding == RowRounding::kFp8 && (args.head_dim - args.rotary.dim) % 64 == 0),
      "qkv: kv_row rounds to FP8 in groups of 64, or not at all");
  if (n == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::qkv_cpu(exec, args)
                                               : detail::qkv_fast(exec, args);
    case Device::kCuda: return detail::qkv_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
