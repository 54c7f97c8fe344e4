#include "kernels/output_project/output_project_prefill.h"

#include "kernels/gemm/gemm.h"

namespace tandem::detail {

bool output_project_prefill_takes(const OutputProjectArgs& args) {
  return cuda::gemm_takes(args.o_a) && cuda::gemm_takes(args.o_b) &&
         (args.num_groups == 1 ||
          (args.o_a.cols % 64 == 0 && args.o_a.rows / args.num_groups % 64 == 0));
}

Status output_project_prefill_cuda(const Exec& exec, const OutputProjectArgs& args) {
  const int64_t n = args.heads.rows;
  const int64_t low_dim = args.o_a.rows;
  Scratch::Frame frame(*exec.scratch);
  cuda::GemmArgs first;
  TANDEM_TRY(cuda::to_fragment_rows(exec, args.heads, first.x));
  first.weight = args.o_a;
  first.num_groups = args.num_groups;
  TANDEM_TRY(cuda::take_fragment_rows(exec, n, low_dim, first.out_half));
  TANDEM_TRY(cuda::gemm(exec, first));
  cuda::GemmArgs second;
  second.x = first.out_half;
  second.weight = args.o_b;
  second.out = args.out;
  return cuda::gemm(exec, second);
}

}  // namespace tandem::detail
