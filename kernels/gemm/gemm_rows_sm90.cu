#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_impl.h"
#include "kernels/gemm/gemm_kernel_sm90.cuh"

namespace tandem::cuda {

Status launch_gemm_rows_sm90(
    const Exec& exec, DType dtype, const GemmParams& params, int num_tiles_x) {
  switch (dtype) {
    case DType::kF32: return launch_gemm_sm90<DType::kF32, false>(exec, params, num_tiles_x);
    case DType::kF16: return launch_gemm_sm90<DType::kF16, false>(exec, params, num_tiles_x);
    case DType::kBF16: return launch_gemm_sm90<DType::kBF16, false>(exec, params, num_tiles_x);
    case DType::kQ8_0: return launch_gemm_sm90<DType::kQ8_0, false>(exec, params, num_tiles_x);
    case DType::kQ2_K: return launch_gemm_sm90<DType::kQ2_K, false>(exec, params, num_tiles_x);
    case DType::kQ4_K: return launch_gemm_sm90<DType::kQ4_K, false>(exec, params, num_tiles_x);
    case DType::kQ6_K: return launch_gemm_sm90<DType::kQ6_K, false>(exec, params, num_tiles_x);
    case DType::kIQ2_XXS:
      return launch_gemm_sm90<DType::kIQ2_XXS, false>(exec, params, num_tiles_x);
    case DType::kMXFP4: return launch_gemm_sm90<DType::kMXFP4, false>(exec, params, num_tiles_x);
    case DType::kI32: break;
  }
  return invalid_argument("gemm: weights are I32");
}

}  // namespace tandem::cuda
