#include <cuda_runtime.h>

#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/linear/dequantize.cuh"
#include "kernels/linear/gemv_parts.cuh"

namespace tandem::cuda {
namespace {

// Grid: x over groups of weight rows, a warp for each row; y over the parts. Each lane sums columns
// 8 lane ... 8 lane + 7 of every 256.
template <DType kDType>
__global__ __launch_bounds__(kGemvThreads) void gemv_exact_kernel(
    const __grid_constant__ GemvKernelArgs args) {
  pdl_wait();
  pdl_launch_dependents();
  const GemvKernelPart& part = args.parts[blockIdx.y];
  const int row = static_cast<int>(blockIdx.x) * kGemvWarps + static_cast<int>(threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= part.rows) return;
  float acc[kPassRowsMax] = {};
  for (int k = lane * 8; k < args.cols; k += 256) {
    float w[8];
    dequantize8<kDType>(part.weight + row * part.row_bytes, args.cols, k, w);
#pragma unroll
    for (int t = 0; t < kPassRowsMax; ++t) {
      if (t >= args.num_rows) break;
      const float* x = part.x + t * part.x_stride + k;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (k + i < args.cols) acc[t] = __fmaf_rn(w[i], x[i], acc[t]);
      }
    }
  }
#pragma unroll
  for (int t = 0; t < kPassRowsMax; ++t) {
    if (t >= args.num_rows) break;
    const float sum = warp_sum(acc[t]);
    if (lane == 0) part.out[t * part.out_stride + row] = sum;
  }
}

}  // namespace

Status gemv_exact(const Exec& exec, std::span<const GemvPart> parts) {
  GemvKernelArgs args = {};
  (void)plan_gemv(parts, 1, args);
  int rows_max = 0;
  for (int i = 0; i < args.num_parts; ++i) rows_max = max(rows_max, args.parts[i].rows);
  const dim3 grid(
      static_cast<unsigned>((rows_max + kGemvWarps - 1) / kGemvWarps),
      static_cast<unsigned>(args.num_parts));
  return with_weight_type("gemv", parts[0].weight.dtype, [&]<DType kDType>() {
    return launch(
        "gemv_exact", gemv_exact_kernel<kDType>, grid, kGemvThreads, 0, exec.stream, args);
  });
}

}  // namespace tandem::cuda
