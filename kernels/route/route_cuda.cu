#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/regime.h"
#include "kernels/gemm/gemm.h"
#include "kernels/linear/gemv.h"
#include "kernels/route/route_impl.h"

namespace tandem::detail {
namespace {

constexpr int kNumThreads = 256;
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

// Grid: a CTA for each row. All threads score, then a warp chooses; its lane l has the experts l,
// l + 32, ...
template <int kPerLane>
__global__ __launch_bounds__(kNumThreads) void select_experts_kernel(
    const __grid_constant__ RouteArgs args, Rows logits, Rows rest) {
  __shared__ float scores[kPerLane * 32];
  __shared__ uint32_t shared_keys[kPerLane * 32];
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const auto t = static_cast<int64_t>(blockIdx.x);
  const auto num_experts = static_cast<int>(args.gate.rows);
  for (int e = threadIdx.x; e < kPerLane * 32; e += kNumThreads) {
    uint32_t key = 0;
    if (e < num_experts) {
      const float z = rest.data == nullptr ? logits.row(t)[e] : logits.row(t)[e] + rest.row(t)[e];
      const float score = expert_score(z);
      scores[e] = score;
      if (args.bias.data != nullptr) key = ordered_bits(score + args.bias.data[e]);
    }
    shared_keys[e] = key;
  }
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const int lane = threadIdx.x;
  const auto top_k = static_cast<int>(args.top_k);
  int chosen = 0;  // lane k keeps the k-th
  if (args.token_experts.data != nullptr) {
    const auto* ids = reinterpret_cast<const int32_t*>(args.token_experts.row(args.step.token[t]));
    if (lane < top_k) chosen = ids[lane];
  } else {
    uint32_t keys[kPerLane];
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) keys[i] = shared_keys[i * 32 + lane];
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
Status launch_select(const Exec& exec, const RouteArgs& args, Rows logits, Rows rest) {
  return cuda::launch(
      "route select", select_experts_kernel<kPerLane>, static_cast<unsigned>(args.step.num_rows),
      kNumThreads, 0, exec.stream, args, logits, rest);
}

// rest = x - f16(x)
__global__ __launch_bounds__(kNumThreads) void split_rest_kernel(ConstRows x, Rows rest) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const auto t = static_cast<int64_t>(blockIdx.x);
  for (int64_t i = threadIdx.x; i < x.cols; i += kNumThreads) {
    const float value = x.row(t)[i];
    const float kept = fminf(fmaxf(value, -65504.0f), 65504.0f);
    rest.row(t)[i] = value - __half2float(__float2half_rn(kept));
  }
}

// The products of many rows in about float32: the tensor cores take x as f16, so its rest is
// multiplied too.
Status split_products(const Exec& exec, const RouteArgs& args, Rows logits, Rows rest_logits) {
  const Scratch::Frame frame(*exec.scratch);
  const Rows rest = {
      exec.scratch->take<float>(args.x.rows * args.x.cols), args.x.rows, args.x.cols, args.x.cols};
  TANDEM_TRY(cuda::launch(
      "route rest", split_rest_kernel, static_cast<unsigned>(args.x.rows), kNumThreads, 0,
      exec.stream, args.x, rest));
  TANDEM_TRY(cuda::gemm_linear(exec, args.x, args.gate, logits));
  return cuda::gemm_linear(exec, rest, args.gate, rest_logits);
}

}  // namespace

Status route_cuda(const Exec& exec, const RouteArgs& args) {
  const int64_t n = args.step.num_rows;
  const int64_t num_experts = args.gate.rows;
  const Scratch::Frame frame(*exec.scratch);
  const auto take = [&] {
    return Rows{exec.scratch->take<float>(n * num_experts), n, num_experts, num_experts};
  };
  const Rows logits = take();
  Rows rest;
  if (cuda::is_prefill(exec) && args.gate.dtype == DType::kF16 && cuda::gemm_takes(args.gate)) {
    rest = take();
    TANDEM_TRY(split_products(exec, args, logits, rest));
  } else {
    const cuda::GemvPart part = {args.x, args.gate, logits};
    TANDEM_TRY(cuda::gemv(exec, {&part, 1}));
  }
  if (num_experts <= 256) return launch_select<8>(exec, args, logits, rest);
  if (num_experts <= 512) return launch_select<16>(exec, args, logits, rest);
  return launch_select<32>(exec, args, logits, rest);
}

}  // namespace tandem::detail
