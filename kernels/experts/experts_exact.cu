#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/experts/expert_groups.cuh"
#include "kernels/experts/experts_decode.h"
#include "kernels/linear/dequantize.cuh"

namespace tandem::detail {
namespace {

constexpr int kNumThreads = 256;
constexpr int kNumWarps = kNumThreads / cuda::kWarpLanes;

__device__ __forceinline__ float row_dot(const WeightView& weight, int64_t row, const float* x) {
  float sum = 0;
  for (int64_t k = threadIdx.x % cuda::kWarpLanes * 8; k < weight.cols; k += 256) {
    float w[8];
    cuda::dequantize8_any(weight.dtype, weight.row(row), weight.cols, k, w);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (k + i < weight.cols) sum = __fmaf_rn(w[i], x[k + i], sum);
    }
  }
  return cuda::warp_sum(sum);
}

__device__ __forceinline__ WeightView expert_weight(const ExpertWeightView& weights, int64_t idx) {
  WeightView weight = weights.first;
  weight.data += idx * weights.expert_bytes;
  return weight;
}

// middle [n * (top_k + 1)]: the activations of each row's chosen experts, then its shared one's.
// Grid: x over groups of their values, a warp for each; y over slots, z over rows.
__global__ __launch_bounds__(kNumThreads) void gate_up_kernel(
    const __grid_constant__ ExpertsArgs args, Rows middle) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const auto top_k = static_cast<int>(args.expert_ids.cols);
  const int slot = blockIdx.y;
  const auto t = static_cast<int64_t>(blockIdx.z);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kNumWarps + threadIdx.x / cuda::kWarpLanes;
  const bool shared = slot == top_k;
  const int64_t expert = shared ? 0 : args.expert_ids.row(t)[slot];
  const WeightView gate = shared ? args.shared_gate : expert_weight(args.gate, expert);
  const WeightView up = shared ? args.shared_up : expert_weight(args.up, expert);
  if (i >= gate.rows) return;
  const float g = row_dot(gate, i, args.x.row(t));
  const float u = row_dot(up, i, args.x.row(t));
  const float limit = shared ? args.shared_swiglu_limit : args.swiglu_limit;
  const float weight = shared ? 1.0f : args.expert_weights.row(t)[slot];
  if (threadIdx.x % cuda::kWarpLanes == 0) {
    middle.row(t * (top_k + 1) + slot)[i] = cuda::activate(g, u, limit, weight);
  }
}

// Grid: x over groups of output values, a warp for each; y over rows.
__global__ __launch_bounds__(kNumThreads) void down_kernel(
    const __grid_constant__ ExpertsArgs args, Rows middle) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const auto top_k = static_cast<int>(args.expert_ids.cols);
  const auto t = static_cast<int64_t>(blockIdx.y);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kNumWarps + threadIdx.x / cuda::kWarpLanes;
  if (i >= args.out.cols) return;
  float sum = 0;
  for (int slot = 0; slot < top_k; ++slot) {
    const WeightView down = expert_weight(args.down, args.expert_ids.row(t)[slot]);
    sum += row_dot(down, i, middle.row(t * (top_k + 1) + slot));
  }
  sum += row_dot(args.shared_down, i, middle.row(t * (top_k + 1) + top_k));
  if (threadIdx.x % cuda::kWarpLanes == 0) args.out.row(t)[i] = sum;
}

}  // namespace

Status experts_exact_cuda(const Exec& exec, const ExpertsArgs& args) {
  const int64_t n = args.x.rows;
  const int64_t slots = args.expert_ids.cols + 1;
  const int64_t width = std::max(args.down.first.cols, args.shared_down.cols);
  const Scratch::Frame frame(*exec.scratch);
  const Rows middle = {exec.scratch->take<float>(n * slots * width), n * slots, width, width};
  const auto groups = [](int64_t count) {
    return static_cast<unsigned>((count + kNumWarps - 1) / kNumWarps);
  };
  TANDEM_TRY(cuda::launch(
      "experts gate_up", gate_up_kernel,
      dim3(groups(width), static_cast<unsigned>(slots), static_cast<unsigned>(n)), kNumThreads, 0,
      exec.stream, args, middle));
  return cuda::launch(
      "experts down", down_kernel, dim3(groups(args.out.cols), static_cast<unsigned>(n)),
      kNumThreads, 0, exec.stream, args, middle);
}

}  // namespace tandem::detail
