#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/hc_pre/hc_pre_impl.h"
#include "kernels/hc_pre/num_streams.cuh"
#include "kernels/hc_pre/stream_dots.cuh"

namespace tandem::detail {
namespace {

constexpr int kNumThreads = 512;
constexpr int kRowThreads = 32;  // a warp: few rows for each multiprocessor
constexpr int kProductsMax = 2 * kHcStreamsMax + kHcStreamsMax * kHcStreamsMax + 1;

template <int kStreams>
__device__ __forceinline__ void divide_rows(float (&comb)[kStreams][kStreams], float eps) {
#pragma unroll
  for (int j = 0; j < kStreams; ++j) {
    float even = eps;
    float odd = 0;
#pragma unroll
    for (int k = 0; k < kStreams; ++k) (k % 2 == 0 ? even : odd) += comb[j][k];
    const float inverse = cuda::reciprocal(even + odd);
#pragma unroll
    for (int k = 0; k < kStreams; ++k) comb[j][k] *= inverse;
  }
}

template <int kStreams>
__device__ __forceinline__ void divide_columns(float (&comb)[kStreams][kStreams], float eps) {
#pragma unroll
  for (int k = 0; k < kStreams; ++k) {
    float even = eps;
    float odd = 0;
#pragma unroll
    for (int j = 0; j < kStreams; ++j) (j % 2 == 0 ? even : odd) += comb[j][k];
    const float inverse = cuda::reciprocal(even + odd);
#pragma unroll
    for (int j = 0; j < kStreams; ++j) comb[j][k] *= inverse;
  }
}

// comb[j][k] of one row, by one thread: s * s is small and every pass needs the one before.
template <int kStreams>
__device__ void sinkhorn(float (&comb)[kStreams][kStreams], int iterations, float eps) {
#pragma unroll
  for (int j = 0; j < kStreams; ++j) {
    float largest = comb[j][0];
    for (int k = 1; k < kStreams; ++k) largest = fmaxf(largest, comb[j][k]);
    float sum = 0;
    for (int k = 0; k < kStreams; ++k) {
      comb[j][k] = expf(comb[j][k] - largest);
      sum += comb[j][k];
    }
    for (int k = 0; k < kStreams; ++k) comb[j][k] = comb[j][k] / sum + eps;
  }
  divide_columns(comb, eps);
  for (int i = 1; i < iterations; ++i) {
    divide_rows(comb, eps);
    divide_columns(comb, eps);
  }
}

// The stream mixing of one row, by one thread. gate(i, group) is the gate of product i.
template <int kStreams, class Gate>
__device__ __forceinline__ void mix_streams(const HcPreArgs& args, const Gate& gate, float* mix) {
  float comb[kStreams][kStreams];
#pragma unroll
  for (int j = 0; j < kStreams; ++j) {
#pragma unroll
    for (int k = 0; k < kStreams; ++k) comb[j][k] = gate(2 * kStreams + kStreams * j + k, 2);
  }
  sinkhorn<kStreams>(comb, args.sinkhorn_iterations, args.hc_eps);
#pragma unroll
  for (int j = 0; j < kStreams; ++j) {
#pragma unroll
    for (int k = 0; k < kStreams; ++k) mix[kStreams + kStreams * j + k] = comb[j][k];
  }
}

// The mixing coefficients of many rows: a thread for each row, since every pass of the Sinkhorn
// iteration needs the one before.
template <int kStreams>
__global__ __launch_bounds__(kRowThreads) void hc_mix_rows_kernel(
    const __grid_constant__ HcPreArgs args, const float* partial, int num_slices) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const int64_t t = static_cast<int64_t>(blockIdx.x) * kRowThreads + threadIdx.x;
  if (t >= args.streams.rows) return;
  const auto num_products = static_cast<int>(args.fn.rows) + 1;
  const float* of_row = partial + t * num_products * num_slices;
  const auto product = [&](int i) {
    float sum = 0;
    for (int slice = 0; slice < num_slices; ++slice) sum += of_row[i * num_slices + slice];
    return sum;
  };
  const float mean_square = product(num_products - 1) / static_cast<float>(args.fn.cols);
  const float r = 1.0f / sqrtf(mean_square + args.rms_eps);
  const auto gate = [&](int i, int group) {
    return product(i) * r * args.scale.data[group] + args.base.data[i];
  };
  float* mix = args.mix.row(t);
#pragma unroll
  for (int k = 0; k < kStreams; ++k) mix[k] = 2.0f * cuda::sigmoid(gate(kStreams + k, 1));
  mix_streams<kStreams>(args, gate, mix);
}

// Grid: x over rows; y = 0 makes the branch input, y = 1 the mixing coefficients, which only
// hc_post needs, at the same time.
template <int kStreams>
__global__ __launch_bounds__(kNumThreads, 2) void hc_mix_kernel(
    const __grid_constant__ HcPreArgs args, const float* partial, int num_slices) {
  __shared__ float products[kProductsMax];
  __shared__ float base[kProductsMax];
  __shared__ float scale[3];
  const auto t = static_cast<int64_t>(blockIdx.x);
  cuda::StreamRegisters<kStreams, kNumThreads> kept;
  if (blockIdx.y == 0) kept.load_norm(args.norm);
  if (threadIdx.x < args.fn.rows) base[threadIdx.x] = args.base.data[threadIdx.x];
  if (threadIdx.x < 3) scale[threadIdx.x] = args.scale.data[threadIdx.x];
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  if (blockIdx.y == 0) {
    kept.load_streams(args.streams.row(t), static_cast<int>(args.norm.size));
  }
  const auto num_products = static_cast<int>(args.fn.rows) + 1;
  // y = 0 needs the first kStreams products, y = 1 the others; both need the sum of squares.
  const int num_needed = blockIdx.y == 0 ? kStreams + 1 : num_products - kStreams;
  for (int n = threadIdx.x / cuda::kWarpLanes; n < num_needed;
       n += kNumThreads / cuda::kWarpLanes) {
    const int i = n + 1 == num_needed ? num_products - 1 : n + (blockIdx.y == 0 ? 0 : kStreams);
    const float sum = cuda::sum_slices(partial + (t * num_products + i) * num_slices, num_slices);
    if (threadIdx.x % cuda::kWarpLanes == 0) products[i] = sum;
  }
  __syncthreads();
  const float mean_square = products[num_products - 1] / static_cast<float>(args.fn.cols);
  const float r = 1.0f / sqrtf(mean_square + args.rms_eps);
  const auto gate = [&](int i, int group) { return products[i] * r * scale[group] + base[i]; };
  if (blockIdx.y == 0) {
    float pre[kStreams];
#pragma unroll
    for (int j = 0; j < kStreams; ++j) pre[j] = cuda::sigmoid(gate(j, 0)) + args.hc_eps;
    cuda::collapse_streams<kStreams, kNumThreads>(
        kept, args.streams.row(t), pre, args.norm, args.rms_eps, args.normed.row(t));
    return;
  }
  float* mix = args.mix.row(t);
  if (threadIdx.x < kStreams) {
    const int k = threadIdx.x;
    mix[k] = 2.0f * cuda::sigmoid(gate(kStreams + k, 1));
  }
  if (threadIdx.x == 32) mix_streams<kStreams>(args, gate, mix);
}

template <int kStreams>
Status launch_streams(
    const Exec& exec, const HcPreArgs& args, const cuda::StreamUpdate& update = {}) {
  const int64_t n = args.streams.rows;
  const int num_slices = cuda::num_slices_for(exec, args.fn.cols);
  const Scratch::Frame frame(*exec.scratch);
  auto* partial = exec.scratch->take<float>(n * (args.fn.rows + 1) * num_slices);
  const cuda::StreamDotArgs dots = {
      args.streams.data, args.streams.stride,
      nullptr,           args.fn,
      partial,           static_cast<int>(n),
      num_slices,        cuda::sliced_stream_dim(kStreams, args.norm.size)};
  TANDEM_TRY(cuda::launch_stream_dots(exec, "hc_pre dots", dots, update));
  const bool by_rows = cuda::is_prefill(exec);
  if (by_rows) {
    TANDEM_TRY(cuda::launch(
        "hc_pre mix", hc_mix_rows_kernel<kStreams>,
        static_cast<unsigned>((n + kRowThreads - 1) / kRowThreads), kRowThreads, 0, exec.stream,
        args, partial, num_slices));
  }
  return cuda::launch(
      "hc_pre mix", hc_mix_kernel<kStreams>, dim3(static_cast<unsigned>(n), by_rows ? 1 : 2),
      kNumThreads, 0, exec.stream, args, partial, num_slices);
}

}  // namespace

Status hc_post_pre_cuda(const Exec& exec, const HcPostArgs& post, const HcPreArgs& pre) {
  return launch_streams<4>(exec, pre, {post.streams.data, post.branch, post.mix});
}

Status hc_pre_cuda(const Exec& exec, const HcPreArgs& args) {
  return cuda::with_num_streams(
      args.num_streams, [&]<int kStreams>() { return launch_streams<kStreams>(exec, args); });
}

}  // namespace tandem::detail
