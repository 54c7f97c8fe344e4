#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/hc_pre/hc_pre.h"
#include "kernels/hc_pre/stream_dots.cuh"
#include "kernels/head/head_impl.h"
#include "kernels/linear/linear.h"

namespace tandem::detail {
namespace {

constexpr int kNumThreads = 512;

// Grid: a CTA for each row whose logits are wanted.
__global__ __launch_bounds__(kNumThreads) void collapse_kernel(
    const __grid_constant__ HeadArgs args, const float* partial, int num_slices, Rows normed) {
  __shared__ float products[kHcStreamsMax + 1];
  __shared__ float pre[kHcStreamsMax];
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const auto i = static_cast<int64_t>(blockIdx.x);
  const auto s = static_cast<int>(args.num_streams);
  const int warp = threadIdx.x / cuda::kWarpLanes;
  if (warp <= s) {
    const float sum = cuda::sum_slices(partial + (i * (s + 1) + warp) * num_slices, num_slices);
    if (threadIdx.x % cuda::kWarpLanes == 0) products[warp] = sum;
  }
  __syncthreads();
  if (threadIdx.x < s) {
    const int j = threadIdx.x;
    const float mean_square = products[s] / static_cast<float>(args.fn.cols);
    const float r = 1.0f / sqrtf(mean_square + args.rms_eps);
    const float gate = products[j] * r * args.scale.data[0] + args.base.data[j];
    pre[j] = cuda::sigmoid(gate) + args.hc_eps;
  }
  __syncthreads();
  cuda::collapse_streams<kNumThreads>(
      args.streams.row(args.step.logit_rows[i]), pre, s, args.norm, args.rms_eps, normed.row(i));
}

}  // namespace

Status head_cuda(const Exec& exec, const HeadArgs& args) {
  static_assert(kHcStreamsMax < kNumThreads / cuda::kWarpLanes, "a warp sums each product");
  const int64_t n = args.step.num_logits;
  const int64_t hidden_dim = args.norm.size;
  const int num_slices = cuda::num_slices_for(args.fn.cols);
  const Scratch::Frame frame(*exec.scratch);
  auto* partial = exec.scratch->take<float>(n * (args.fn.rows + 1) * num_slices);
  const Rows normed = {exec.scratch->take<float>(n * hidden_dim), n, hidden_dim, hidden_dim};
  const cuda::StreamDotArgs dots = {
      args.streams.data,   args.streams.stride, args.step.logit_rows, args.fn, partial,
      static_cast<int>(n), num_slices};
  const int64_t row_groups = (n + cuda::kDotRowsPerCta - 1) / cuda::kDotRowsPerCta;
  TANDEM_TRY(cuda::launch(
      "head dots", cuda::stream_dots_kernel,
      dim3(static_cast<unsigned>(num_slices), static_cast<unsigned>(row_groups)), cuda::kDotThreads,
      0, exec.stream, dots));
  TANDEM_TRY(cuda::launch(
      "head collapse", collapse_kernel, static_cast<unsigned>(n), kNumThreads, 0, exec.stream, args,
      partial, num_slices, normed));
  return linear(exec, {normed, args.output, args.logits});
}

}  // namespace tandem::detail
