#include "kernels/cuda/dispatch.cuh"
#include "kernels/gemm/gemm_impl.h"
#include "kernels/gemm/gemm_kernel.cuh"

namespace tandem::cuda {

Status launch_gemm_gate_up(
    const Exec& exec, DType dtype, bool small, const GemmParams& params, int num_tiles_x) {
  return with_weight_type("gemm", dtype, [&]<DType kDType>() {
    return small ? launch_gemm<kDType, 4, true>(exec, params, num_tiles_x)
                 : launch_gemm<kDType, 8, true>(exec, params, num_tiles_x);
  });
}

}  // namespace tandem::cuda
