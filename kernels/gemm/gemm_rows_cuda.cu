#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_impl.h"
#include "kernels/gemm/gemm_kernel.cuh"

namespace tandem::cuda {
namespace {

template <DType kDType>
Status launch_sized(const Exec& exec, bool small, const GemmParams& params, int num_tiles_x) {
  return small ? launch_gemm<kDType, 4, false>(exec, params, num_tiles_x)
               : launch_gemm<kDType, 8, false>(exec, params, num_tiles_x);
}

}  // namespace

Status launch_gemm_rows(
    const Exec& exec, DType dtype, bool small, const GemmParams& params, int num_tiles_x) {
  switch (dtype) {
    case DType::kF32: return launch_sized<DType::kF32>(exec, small, params, num_tiles_x);
    case DType::kF16: return launch_sized<DType::kF16>(exec, small, params, num_tiles_x);
    case DType::kBF16: return launch_sized<DType::kBF16>(exec, small, params, num_tiles_x);
    case DType::kQ8_0: return launch_sized<DType::kQ8_0>(exec, small, params, num_tiles_x);
    case DType::kQ2_K: return launch_sized<DType::kQ2_K>(exec, small, params, num_tiles_x);
    case DType::kQ4_K: return launch_sized<DType::kQ4_K>(exec, small, params, num_tiles_x);
    case DType::kQ6_K: return launch_sized<DType::kQ6_K>(exec, small, params, num_tiles_x);
    case DType::kIQ2_XXS: return launch_sized<DType::kIQ2_XXS>(exec, small, params, num_tiles_x);
    case DType::kMXFP4: return launch_sized<DType::kMXFP4>(exec, small, params, num_tiles_x);
    case DType::kI32: break;
  }
  return invalid_argument("gemm: weights are I32");
}

}  // namespace tandem::cuda
