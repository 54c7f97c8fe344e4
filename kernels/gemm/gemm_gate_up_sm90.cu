#include "kernels/cuda/dispatch.cuh"
#include "kernels/gemm/gemm_impl.h"
#include "kernels/gemm/gemm_kernel_sm90.cuh"

namespace tandem::cuda {

Status launch_gemm_gate_up_sm90(
    const Exec& exec, DType dtype, const GemmParams& params, int num_tiles_x) {
  return with_weight_type("gemm", dtype, [&]<DType kDType>() {
    return launch_gemm_sm90<kDType, true>(exec, params, num_tiles_x);
  });
}

}  // namespace tandem::cuda
