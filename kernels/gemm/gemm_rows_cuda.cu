#include "kernels/cuda/dispatch.cuh"
#include "kernels/gemm/gemm_impl.h"
#include "kernels/gemm/gemm_kernel.cuh"

namespace tandem::cuda {

Status launch_gemm_rows(
    const Exec& exec, DType dtype, bool small, const GemmParams& params, int num_tiles_x) {
  return with_weight_type("gemm", dtype, [&]<DType kDType>() {
    return small ? launch_gemm<kDType, 4, false>(exec, params, num_tiles_x)
                 : launch_gemm<kDType, 8, false>(exec, params, num_tiles_x);
  });
}

}  // namespace tandem::cuda
