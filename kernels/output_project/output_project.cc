#include "kernels/output_project/output_project.h"

#include "kernels/core/require.h"
#include "kernels/output_project/output_project_impl.h"

namespace tandem {

Status output_project(const Exec& exec, const OutputProjectArgs& args) {
  const int64_t n = args.heads.rows;
  const int64_t g = args.num_groups;
  TANDEM_TRY(require_step_size("output_project", n));
  TANDEM_REQUIRE(g >= 1 && args.o_b.cols % g == 0, str_cat("output_project: num_groups is ", g));
  TANDEM_TRY(require_weight("output_project: o_a", args.o_a, args.o_b.cols, args.o_a.cols));
  TANDEM_TRY(require_rows("output_project: heads", args.heads, n, g * args.o_a.cols));
  TANDEM_TRY(require_rows("output_project: out", args.out, n, args.o_b.rows));
  if (n == 0) return {};
  switch (exec.device) {
    case Device::kCpu:
      return exec.numerics == Numerics::kExact ? detail::output_project_cpu(exec, args)
                                               : detail::output_project_fast(exec, args);
    case Device::kCuda: return detail::output_project_cuda(exec, args);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
