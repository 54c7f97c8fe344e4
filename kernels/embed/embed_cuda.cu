#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/embed/embed_impl.h"
#include "kernels/linear/dequantize.cuh"

namespace tandem::detail {
namespace {

constexpr int kNumThreads = 128;

// Grid: x over groups of eight values, y over rows.
__global__ __launch_bounds__(kNumThreads) void embed_kernel(
    const __grid_constant__ EmbedArgs args) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const int64_t cols = args.table.cols;
  const int64_t k = (static_cast<int64_t>(blockIdx.x) * kNumThreads + threadIdx.x) * 8;
  if (k >= cols) return;
  const int64_t t = blockIdx.y;
  float v[8];
  cuda::dequantize8_any(args.table.dtype, args.table.row(args.step.token[t]), cols, k, v);
  float* out = args.streams.row(t);
  for (int64_t s = 0; s < args.num_streams; ++s) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (k + i < cols) out[s * cols + k + i] = v[i];
    }
  }
}

}  // namespace

Status embed_cuda(const Exec& exec, const EmbedArgs& args) {
  const int64_t groups = (args.table.cols + 8 * kNumThreads - 1) / (8 * kNumThreads);
  const dim3 grid(static_cast<unsigned>(groups), static_cast<unsigned>(args.step.num_rows));
  return cuda::launch("embed", embed_kernel, grid, kNumThreads, 0, exec.stream, args);
}

}  // namespace tandem::detail
