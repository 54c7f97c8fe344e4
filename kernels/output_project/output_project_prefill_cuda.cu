#include "kernels/output_project/output_project_prefill.h"

#include <cuda_fp16.h>

#include "kernels/gemm/gemm.h"

namespace tandem::detail {

Status output_project_prefill_cuda(const Exec& exec, const OutputProjectArgs& args) {
  const int64_t n = args.heads.rows;
  const int64_t low_dim = args.o_a.rows;
  Scratch::Frame frame(*exec.scratch);
  cuda::GemmArgs first;
  TANDEM_TRY(cuda::to_fragment_rows(exec, args.heads, first.x));
  first.weight = args.o_a;
  first.num_groups = args.num_groups;
  first.out_half = {exec.scratch->take<__half>(n * low_dim), n, low_dim, low_dim};
  TANDEM_TRY(cuda::gemm(exec, first));
  cuda::GemmArgs second;
  second.x = first.out_half;
  second.weight = args.o_b;
  second.out = args.out;
  return cuda::gemm(exec, second);
}

}  // namespace tandem::detail
