#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/hc_post/hc_post_impl.h"
#include "kernels/hc_pre/num_streams.cuh"

namespace tandem::detail {
namespace {

constexpr int kNumThreads = 128;

// Grid: x over the hidden dimension, y over rows. A thread owns one dimension of every stream, so
// that it replaces only what it read.
template <int kStreams>
__global__ __launch_bounds__(kNumThreads) void hc_post_kernel(
    const __grid_constant__ HcPostArgs args) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const int64_t hidden_dim = args.branch.cols;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kNumThreads + threadIdx.x;
  if (i >= hidden_dim) return;
  const int64_t t = blockIdx.y;
  float* x = args.streams.row(t) + i;
  const float* mix = args.mix.row(t);
  const float branch = args.branch.row(t)[i];
  float old[kStreams];
#pragma unroll
  for (int j = 0; j < kStreams; ++j) old[j] = x[j * hidden_dim];
#pragma unroll
  for (int k = 0; k < kStreams; ++k) {
    float sum = __fmul_rn(mix[k], branch);
#pragma unroll
    for (int j = 0; j < kStreams; ++j) {
      sum = __fmaf_rn(mix[kStreams + kStreams * j + k], old[j], sum);
    }
    x[k * hidden_dim] = sum;
  }
}

template <int kStreams>
Status launch_streams(const Exec& exec, const HcPostArgs& args) {
  const int64_t ctas = (args.branch.cols + kNumThreads - 1) / kNumThreads;
  const dim3 grid(static_cast<unsigned>(ctas), static_cast<unsigned>(args.streams.rows));
  return cuda::launch("hc_post", hc_post_kernel<kStreams>, grid, kNumThreads, 0, exec.stream, args);
}

}  // namespace

Status hc_post_cuda(const Exec& exec, const HcPostArgs& args) {
  return cuda::with_num_streams(
      args.num_streams, [&]<int kStreams>() { return launch_streams<kStreams>(exec, args); });
}

}  // namespace tandem::detail
