#include <cuda_runtime.h>

#include <array>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/regime.h"
#include "kernels/cuda/row_math.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/gemm/gemm.h"
#include "kernels/linear/gemv.h"
#include "kernels/linear/linear.h"
#include "kernels/qkv/qkv_impl.h"

namespace tandem::detail {
namespace {

constexpr int kNumThreads = 256;
constexpr int kHeadThreads = 128;

__device__ __forceinline__ float inverse_rms(float sum_squares, int64_t size, float eps) {
  return 1.0f / sqrtf(sum_squares / static_cast<float>(size) + eps);
}

template <int kThreads>
__device__ __forceinline__ float sum_of_squares(const float* x, int64_t size) {
  float sum = 0;
  for (int64_t i = threadIdx.x; i < size; i += kThreads) sum = __fmaf_rn(x[i], x[i], sum);
  return cuda::cta_sum<kThreads>(sum);
}

// Rotates the tail of a row in place; a thread takes whole pairs.
template <int kThreads>
__device__ __forceinline__ void rotate_tail(
    float* row, int64_t size, const RotaryView& rotary, int64_t pos) {
  float* tail = row + (size - rotary.dim);
  for (int64_t i = threadIdx.x; i < rotary.dim / 2; i += kThreads) {
    const float angle = static_cast<float>(pos) * rotary.frequencies[i];
    const float2 pair = cuda::rotate_pair(tail[2 * i], tail[2 * i + 1], angle);
    tail[2 * i] = pair.x;
    tail[2 * i + 1] = pair.y;
  }
}

// Rounds groups of 64 in place, a warp for each.
__device__ __forceinline__ void round_groups(float* row, int64_t size) {
  const int lane = threadIdx.x % cuda::kWarpLanes;
  for (int64_t begin = threadIdx.x / cuda::kWarpLanes * 64; begin < size;
       begin += kNumThreads / cuda::kWarpLanes * 64) {
    const float a = row[begin + lane];
    const float b = row[begin + 32 + lane];
    const float largest = cuda::warp_max(fmaxf(fabsf(a), fabsf(b)));
    row[begin + lane] = cuda::round_fp8(a, largest);
    row[begin + 32 + lane] = cuda::round_fp8(b, largest);
  }
}

// Grid: x over rows; y = 0 norms the query latent, y = 1 finishes the key-value row.
__global__ __launch_bounds__(kNumThreads) void finish_latents_kernel(
    const __grid_constant__ QkvArgs args) {
  constexpr int kKept = 4;  // of the norm, a weight, read while the kernel before still runs
  const auto t = static_cast<int64_t>(blockIdx.x);
  const bool is_kv = blockIdx.y == 1;
  const VectorView norm = is_kv ? args.kv_norm : args.q_a_norm;
  float kept[kKept];
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    const int64_t at = threadIdx.x + i * kNumThreads;
    kept[i] = at < norm.size ? norm.data[at] : 0.0f;
  }
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  float* row = is_kv ? args.kv_row.row(t) : args.q_latent.row(t);
  const float scale =
      inverse_rms(sum_of_squares<kNumThreads>(row, norm.size), norm.size, args.rms_eps);
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    const int64_t at = threadIdx.x + i * kNumThreads;
    if (at < norm.size) row[at] *= scale * kept[i];
  }
  for (int64_t i = threadIdx.x + kKept * kNumThreads; i < norm.size; i += kNumThreads) {
    row[i] *= scale * norm.data[i];
  }
  if (!is_kv) return;
  __syncthreads();
  rotate_tail<kNumThreads>(row, norm.size, args.rotary, args.step.pos[t]);
  if (args.rounding == RowRounding::kFp8) round_groups(row, norm.size - args.rotary.dim);
}

// Grid: x over heads, y over rows.
__global__ __launch_bounds__(kHeadThreads) void finish_heads_kernel(
    const __grid_constant__ QkvArgs args) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const auto t = static_cast<int64_t>(blockIdx.y);
  float* head = args.q.row(t) + blockIdx.x * args.head_dim;
  const float scale =
      inverse_rms(sum_of_squares<kHeadThreads>(head, args.head_dim), args.head_dim, args.rms_eps);
  for (int64_t i = threadIdx.x; i < args.head_dim; i += kHeadThreads) head[i] *= scale;
  __syncthreads();
  rotate_tail<kHeadThreads>(head, args.head_dim, args.rotary, args.step.pos[t]);
}

}  // namespace

Status qkv_cuda(const Exec& exec, const QkvArgs& args) {
  const auto n = static_cast<unsigned>(args.step.num_rows);
  if (cuda::is_prefill(exec) && cuda::gemm_takes(args.q_a) && cuda::gemm_takes(args.kv)) {
    TANDEM_TRY(
        cuda::gemm_linears(exec, args.x, {{{args.q_a, args.q_latent}, {args.kv, args.kv_row}}}));
  } else {
    const std::array<cuda::GemvPart, 2> latents = {
        {{args.x, args.q_a, args.q_latent}, {args.x, args.kv, args.kv_row}}};
    TANDEM_TRY(cuda::gemv(exec, latents));
  }
  TANDEM_TRY(cuda::launch(
      "qkv latents", finish_latents_kernel, dim3(n, 2), kNumThreads, 0, exec.stream, args));
  TANDEM_TRY(linear(exec, {args.q_latent, args.q_b, args.q}));
  return cuda::launch(
      "qkv heads", finish_heads_kernel, dim3(static_cast<unsigned>(args.num_heads), n),
      kHeadThreads, 0, exec.stream, args);
}

}  // namespace tandem::detail
