#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/hc_pre/num_streams.cuh"
#include "kernels/hc_pre/stream_dots.cuh"
#include "kernels/head/head_impl.h"
#include "kernels/linear/linear.h"

namespace tandem::detail {
namespace {

constexpr int kNumThreads = 512;

// Grid: a CTA for each row whose logits are wanted.
template <int kStreams>
__global__ __launch_bounds__(kNumThreads) void collapse_kernel(
    const __grid_constant__ HeadArgs args, const float* partial, int num_slices, Rows normed) {
  __shared__ float products[kStreams + 1];
  const auto i = static_cast<int64_t>(blockIdx.x);
  const int warp = threadIdx.x / cuda::kWarpLanes;
  cuda::StreamRegisters<kStreams, kNumThreads> kept;
  kept.load_norm(args.norm);
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const float* x = args.streams.row(args.step.logit_rows[i]);
  kept.load_streams(x, static_cast<int>(args.norm.size));
  if (warp <= kStreams) {
    const float sum =
        cuda::sum_slices(partial + (i * (kStreams + 1) + warp) * num_slices, num_slices);
    if (threadIdx.x % cuda::kWarpLanes == 0) products[warp] = sum;
  }
  __syncthreads();
  const float mean_square = products[kStreams] / static_cast<float>(args.fn.cols);
  const float r = 1.0f / sqrtf(mean_square + args.rms_eps);
  float pre[kStreams];
#pragma unroll
  for (int j = 0; j < kStreams; ++j) {
    const float gate = products[j] * r * args.scale.data[0] + args.base.data[j];
    pre[j] = cuda::sigmoid(gate) + args.hc_eps;
  }
  cuda::collapse_streams<kStreams, kNumThreads>(
      kept, x, pre, args.norm, args.rms_eps, normed.row(i));
}

Status launch_collapse(
    const Exec& exec, const HeadArgs& args, const float* partial, int num_slices, Rows normed) {
  return cuda::with_num_streams(args.num_streams, [&]<int kStreams>() {
    return cuda::launch(
        "head collapse", collapse_kernel<kStreams>, static_cast<unsigned>(normed.rows), kNumThreads,
        0, exec.stream, args, partial, num_slices, normed);
  });
}

}  // namespace

Status head_cuda(const Exec& exec, const HeadArgs& args) {
  static_assert(kHcStreamsMax < kNumThreads / cuda::kWarpLanes, "a warp sums each product");
  const int64_t n = args.step.num_logits;
  const int64_t hidden_dim = args.norm.size;
  const int num_slices = cuda::num_slices_for(exec, args.fn.cols);
  const Scratch::Frame frame(*exec.scratch);
  auto* partial = exec.scratch->take<float>(n * (args.fn.rows + 1) * num_slices);
  const Rows normed = {exec.scratch->take<float>(n * hidden_dim), n, hidden_dim, hidden_dim};
  const cuda::StreamDotArgs dots = {
      args.streams.data,
      args.streams.stride,
      args.step.logit_rows,
      args.fn,
      partial,
      static_cast<int>(n),
      num_slices,
      cuda::sliced_stream_dim(args.num_streams, hidden_dim)};
  TANDEM_TRY(cuda::launch_stream_dots(exec, "head dots", dots, {}));
  TANDEM_TRY(launch_collapse(exec, args, partial, num_slices, normed));
  return linear(exec, {normed, args.output, args.logits});
}

}  // namespace tandem::detail
