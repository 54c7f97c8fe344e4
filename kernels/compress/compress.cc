#include "kernels/compress/compress.h"

#include "kernels/compress/compress_impl.h"
#include "kernels/core/require.h"

namespace tandem {

Status compress(const Exec& exec, const CompressArgs& args) {
  const int64_t n = args.step.num_rows;
  const int64_t width = compress_width(args.ratio, args.row_dim);
  TANDEM_TRY(require_step_size("compress", n));
  TANDEM_REQUIRE(
      args.ratio >= 1 && args.ratio <= kCompressRatioMax && kChunkGridTokens % args.ratio == 0,
      str_cat("compress: ratio ", args.ratio, " does not divide ", kChunkGridTokens));
  TANDEM_TRY(require_rows("compress: x", args.x, n, args.kv.cols));
  TANDEM_TRY(require_weight("compress: kv", args.kv, width, args.x.cols));
  TANDEM_TRY(require_weight("compress: gate", args.gate, width, args.x.cols));
  TANDEM_TRY(require_weight("compress: ape", args.ape, args.ratio, width));
  TANDEM_TRY(require_vector("compress: norm", args.norm, args.row_dim));
  TANDEM_TRY(require_rotary("compress: rotary", args.rotary, args.row_dim));
  TANDEM_TRY(require_rows("compress: projected", args.projected, n, 2 * width));
  TANDEM_TRY(require_slab("compress: history", args.history, 2 * width));
  TANDEM_TRY(require_slab("compress: rows", args.rows, args.row_dim));
  TANDEM_REQUIRE(
      args.history.capacity_rows >= compress_span(args.ratio) - 1,
      str_cat("compress: history keeps ", args.history.capacity_rows, " rows"));
  TANDEM_REQUIRE(
      args.rounding != RowRounding::kFp8 || (args.row_dim - args.rotary.dim) % 64 == 0,
      "compress: FP8 rounding needs groups of 64");
  TANDEM_REQUIRE(
      args.rounding != RowRounding::kHadamardFp4 ||
          (args.row_dim % 32 == 0 && (args.row_dim & (args.row_dim - 1)) == 0),
      "compress: Hadamard and FP4 rounding need a power of two of at least 32");
  if (n == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::compress_cpu(exec, args)
                                               : detail::compress_fast(exec, args);
    case Device::kCuda: return detail::compress_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
