#include "kernels/embed/embed.h"

#include "kernels/core/require.h"
#include "kernels/embed/embed_impl.h"

namespace tandem {

Status embed(const Exec& exec, const EmbedArgs& args) {
  TANDEM_TRY(require_step_size("embed", args.step.num_rows));
  TANDEM_REQUIRE(
      args.num_streams >= 1 && args.num_streams <= 8,
      str_cat("embed: num_streams is ", args.num_streams, ", needs 1 to 8"));
  TANDEM_TRY(require_rows(
      "embed: streams", args.streams, args.step.num_rows, args.num_streams * args.table.cols));
  TANDEM_REQUIRE(args.table.dtype != DType::kI32, "embed: table is I32");
  if (args.step.num_rows == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::embed_cpu(exec, args)
                                               : detail::embed_fast(exec, args);
    case Device::kCuda: return detail::embed_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
