#include "kernels/index_select/index_select.h"

#include "kernels/core/require.h"
#include "kernels/index_select/index_select_impl.h"

namespace tandem {

Status index_select(const Exec& exec, const IndexSelectArgs& args) {
  const int64_t n = args.step.num_rows;
  TANDEM_TRY(require_step_size("index_select", n));
  TANDEM_REQUIRE(args.top_k >= 1, str_cat("index_select: top_k is ", args.top_k));
  TANDEM_REQUIRE(args.ratio >= 1, str_cat("index_select: ratio is ", args.ratio));
  TANDEM_TRY(require_rows("index_select: x", args.x, n, args.weights.cols));
  TANDEM_TRY(require_rows("index_select: q_latent", args.q_latent, n, args.q_b.cols));
  TANDEM_TRY(require_weight(
      "index_select: q_b", args.q_b, args.num_heads * args.head_dim, args.q_latent.cols));
  TANDEM_TRY(require_weight("index_select: weights", args.weights, args.num_heads, args.x.cols));
  TANDEM_TRY(require_rotary("index_select: rotary", args.rotary, args.head_dim));
  TANDEM_TRY(require_slab("index_select: rows", args.rows, args.head_dim));
  TANDEM_TRY(require_rows("index_select: selection", args.selection, n, args.top_k));
  TANDEM_REQUIRE(args.rounding != RowRounding::kFp8, "index_select: queries do not round to FP8");
  TANDEM_REQUIRE(
      args.rounding != RowRounding::kHadamardFp4 ||
          (args.head_dim % 32 == 0 && (args.head_dim & (args.head_dim - 1)) == 0),
      "index_select: Hadamard and FP4 rounding need a power of two of at least 32");
  if (n == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::index_select_cpu(exec, args)
                                               : detail::index_select_fast(exec, args);
    case Device::kCuda: return detail::index_select_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
