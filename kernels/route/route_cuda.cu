#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/linear/linear.h"
#include "kernels/route/route_impl.h"

namespace tandem::detail {
namespace {

constexpr int kWarpsPerCta = 4;
constexpr float kWeightSumMin = 0x1p-14f;

__device__ __forceinline__ float expert_score(float z) {
  float softplus = 0;
  if (z > 20.0f) {
    softplus = z;
  } else if (z < -20.0f) {
    softplus = expf(z);
  } else {
    softplus = log1pf(expf(z));
  }
  return sqrtf(softplus);
}

// Orders as the float does; 0 is below every number.
__device__ __forceinline__ uint32_t ordered_bits(float value) {
  const uint32_t bits = __float_as_uint(value + 0.0f);  // -0 becomes +0
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

// Grid: a warp for each row. Lane l has the experts l, l + 32, ...
template <int kPerLane>
__global__ __launch_bounds__(kWarpsPerCta * 32) void select_experts_kernel(
    const __grid_constant__ RouteArgs args, Rows logits) {
  __shared__ float scores_of[kWarpsPerCta][kPerLane * 32];
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const int lane = threadIdx.x % 32;
  const int64_t t = static_cast<int64_t>(blockIdx.x) * kWarpsPerCta + threadIdx.x / 32;
  if (t >= args.step.num_rows) return;
  float* scores = scores_of[threadIdx.x / 32];
  const auto num_experts = static_cast<int>(args.gate.rows);
  uint32_t keys[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int e = i * 32 + lane;
    keys[i] = 0;
    if (e < num_experts) {
      const float score = expert_score(logits.row(t)[e]);
      scores[e] = score;
      if (args.bias.data != nullptr) keys[i] = ordered_bits(score + args.bias.data[e]);
    }
  }
  __syncwarp();
  const auto top_k = static_cast<int>(args.top_k);
  int chosen = 0;  // lane k keeps the k-th
  if (args.token_experts.data != nullptr) {
    const auto* ids = reinterpret_cast<const int32_t*>(args.token_experts.row(args.step.token[t]));
    if (lane < top_k) chosen = ids[lane];
  } else {
    for (int k = 0; k < top_k; ++k) {
      uint32_t best = 0;
      int best_expert = num_experts;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        if (keys[i] > best) {
          best = keys[i];
          best_expert = i * 32 + lane;
        }
      }
      const uint32_t largest = __reduce_max_sync(0xffffffffU, best);
      const auto winner = static_cast<int>(__reduce_min_sync(
          0xffffffffU, static_cast<uint32_t>(best == largest ? best_expert : num_experts)));
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        if (i * 32 + lane == winner) keys[i] = 0;
      }
      if (lane == k) chosen = winner < num_experts ? winner : 0;
    }
  }
  const float score = lane < top_k ? scores[chosen] : 0.0f;
  float sum = 0;
  for (int k = 0; k < top_k; ++k) sum += __shfl_sync(0xffffffffU, score, k);
  if (lane < top_k) {
    args.expert_ids.row(t)[lane] = chosen;
    args.expert_weights.row(t)[lane] = score / fmaxf(sum, kWeightSumMin) * args.scale;
  }
}

template <int kPerLane>
Status launch_select(const Exec& exec, const RouteArgs& args, Rows logits) {
  const int64_t ctas = (args.step.num_rows + kWarpsPerCta - 1) / kWarpsPerCta;
  return cuda::launch(
      "route select", select_experts_kernel<kPerLane>, static_cast<unsigned>(ctas),
      kWarpsPerCta * 32, 0, exec.stream, args, logits);
}

}  // namespace

Status route_cuda(const Exec& exec, const RouteArgs& args) {
  const int64_t n = args.step.num_rows;
  const int64_t num_experts = args.gate.rows;
  const Scratch::Frame frame(*exec.scratch);
  const Rows logits = {exec.scratch->take<float>(n * num_experts), n, num_experts, num_experts};
  TANDEM_TRY(linear(exec, {args.x, args.gate, logits}));
  if (num_experts <= 256) return launch_select<8>(exec, args, logits);
  if (num_experts <= 512) return launch_select<16>(exec, args, logits);
  return launch_select<32>(exec, args, logits);
}

}  // namespace tandem::detail
