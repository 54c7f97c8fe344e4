#include "kernels/linear/reference_linear.h"
#include "kernels/output_project/output_project_impl.h"

namespace tandem::detail {

Status output_project_cpu(const Exec& exec, const OutputProjectArgs& args) {
  const Scratch::Frame frame(*exec.scratch);
  const int64_t n = args.heads.rows;
  const int64_t low_dim = args.o_b.cols;
  const int64_t rank = low_dim / args.num_groups;
  const int64_t group_dim = args.o_a.cols;
  const Rows low{exec.scratch->take<float>(n * low_dim), n, low_dim, low_dim};
  for (int64_t g = 0; g < args.num_groups; ++g) {
    reference::linear(
        exec, {args.heads.data + g * group_dim, n, group_dim, args.heads.stride},
        args.o_a.slice(g * rank, rank), {low.data + g * rank, n, rank, low.stride});
  }
  reference::linear(exec, low, args.o_b, args.out);
  return {};
}

}  // namespace tandem::detail
