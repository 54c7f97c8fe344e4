#include "kernels/gemm/gemm.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/gemm/gemm_impl.h"
#include "kernels/gemm/gemm_kernel.cuh"

namespace tandem::cuda {
namespace {

constexpr float kHalfMax = 65504.0f;
constexpr int kConvertThreads = 256;
constexpr int kSortThreads = 256;

__device__ __forceinline__ uint32_t pack_clamped(float low, float high) {
  return pack_pair<__half>(
      fminf(fmaxf(low, -kHalfMax), kHalfMax), fminf(fmaxf(high, -kHalfMax), kHalfMax));
}

// Grid: (parts of a row, rows). A thread converts the eight values 8 c ... of a group of 32: its
// four pairs go to the four places of two words of fragment order, so the four threads of a group
// write 64 bytes together.
__global__ __launch_bounds__(kConvertThreads) void convert_kernel(
    const float* x, int64_t x_stride, __half* out, int64_t out_stride, int k) {
  pdl_wait();
  pdl_launch_dependents();
  const int first = (blockIdx.x * kConvertThreads + threadIdx.x) * 8;
  if (first >= k) return;
  const float* source = x + blockIdx.y * x_stride + first;
  float v[8];
  if (x_stride % 4 == 0) {
    const float4 low = *reinterpret_cast<const float4*>(source);
    const float4 high = *reinterpret_cast<const float4*>(source + 4);
    v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
    v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = source[i];
  }
  __half* target = out + blockIdx.y * out_stride;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<uint32_t*>(target + fragment_position(first + 2 * i)) =
        pack_clamped(v[2 * i], v[2 * i + 1]);
  }
}

// Grid: one CTA for each expert and one that ends the offsets. It counts the slots of smaller
// experts, then lists its own in ascending order.
__global__ __launch_bounds__(kSortThreads) void sort_kernel(
    const int32_t* ids, int64_t stride, int top_k, int num_slots, int32_t* order,
    int32_t* offsets) {
  constexpr int kWarps = kSortThreads / 32;
  __shared__ int warp_counts[kWarps];
  __shared__ int total;
  pdl_wait();
  pdl_launch_dependents();
  const int expert = blockIdx.x;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const auto id_of = [&](int slot) { return ids[slot / top_k * stride + slot % top_k]; };

  int smaller = 0;
  for (int slot = threadIdx.x; slot < num_slots; slot += kSortThreads) {
    if (id_of(slot) < expert) ++smaller;
  }
  smaller = __reduce_add_sync(0xffffffff, smaller);
  if (lane == 0) warp_counts[warp] = smaller;
  __syncthreads();
  if (threadIdx.x == 0) {
    total = 0;
    for (int i = 0; i < kWarps; ++i) total += warp_counts[i];
    offsets[expert] = total;
  }
  __syncthreads();
  int next = total;
  if (expert == static_cast<int>(gridDim.x) - 1) return;

  for (int first = 0; first < num_slots; first += kSortThreads) {
    const int slot = first + threadIdx.x;
    const bool own = slot < num_slots && id_of(slot) == expert;
    const uint32_t votes = __ballot_sync(0xffffffff, own);
    if (lane == 0) warp_counts[warp] = __popc(votes);
    __syncthreads();
    int before = 0;
    int all = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      before += i < warp ? warp_counts[i] : 0;
      all += warp_counts[i];
    }
    if (own) order[next + before + __popc(votes & ((1U << lane) - 1))] = slot;
    next += all;
    __syncthreads();
  }
}

Status check_weight(const char* what, const WeightView& weight, int64_t k) {
  TANDEM_REQUIRE(
      weight.cols == k && weight.cols % 32 == 0 && weight.row_bytes % 16 == 0,
      str_cat(
          what, ": weight rows of ", weight.cols, " values in ", weight.row_bytes,
          " bytes for rows of ", k));
  return {};
}

/// Whether tiles of `tile_rows` leave much of a large device idle.
bool is_small(int64_t rows, int64_t tile_rows, int64_t num_tiles_x) {
  constexpr int64_t kTilesWanted = 192;
  return (rows + tile_rows - 1) / tile_rows * num_tiles_x < kTilesWanted;
}

GemmParams base_params(const FragmentRows& x, const WeightView& weight) {
  GemmParams params;
  params.x = x.data;
  params.x_stride = x.stride;
  params.n = static_cast<int>(x.rows);
  params.weight[0] = weight.data;
  params.row_bytes = weight.row_bytes;
  params.rows = static_cast<int>(weight.rows);
  params.k = static_cast<int>(weight.cols);
  params.rows_per_group = params.rows;
  return params;
}

/// Makes the product run over sorted rows; returns the number of tiles of x to launch.
int64_t use_order(GemmParams& params, const ExpertOrder& order, int64_t expert_bytes) {
  params.order = order.order;
  params.offsets = order.offsets;
  params.num_experts = static_cast<int>(order.num_experts);
  params.expert_bytes = expert_bytes;
  params.n = static_cast<int>(order.num_slots);
  // Each expert with rows has at most one tile that is not full.
  return order.num_slots / kTileX + std::min(order.num_experts, order.num_slots);
}

}  // namespace

Status to_fragment_rows(const Exec& exec, ConstRows x, FragmentRows& out) {
  TANDEM_REQUIRE(x.cols % 32 == 0, str_cat("gemm: rows of ", x.cols, " values"));
  out = {exec.scratch->take<__half>(x.rows * x.cols), x.rows, x.cols, x.cols};
  const dim3 grid(
      static_cast<unsigned>((x.cols / 8 + kConvertThreads - 1) / kConvertThreads),
      static_cast<unsigned>(x.rows));
  return launch(
      "to_fragment_rows", convert_kernel, grid, dim3(kConvertThreads), 0, exec.stream, x.data,
      x.stride, out.data, out.stride, static_cast<int>(x.cols));
}

Status gemm(const Exec& exec, const GemmArgs& args) {
  const WeightView& weight = args.weight;
  const int64_t rows_per_group = weight.rows / args.num_groups;
  TANDEM_TRY(check_weight("gemm", weight, args.x.k / args.num_groups));
  GemmParams params = base_params(args.x, weight);
  params.out = args.out.data;
  params.out_stride = args.out.stride;
  params.out_half = args.out_half.data;
  params.out_half_stride = args.out_half.stride;
  const int64_t tiles_x = (args.x.rows + kTileX - 1) / kTileX;
  const bool small = is_small(weight.rows, 256, tiles_x);
  if (args.num_groups == 1 || rows_per_group % (small ? 128 : 256) == 0) {
    params.rows_per_group = static_cast<int>(rows_per_group);
    return launch_gemm_rows(exec, weight.dtype, small, params, static_cast<int>(tiles_x));
  }
  TANDEM_REQUIRE(
      rows_per_group % 32 == 0 || args.out_half.data == nullptr,
      str_cat("gemm: groups of ", rows_per_group, " rows"));
  for (int64_t g = 0; g < args.num_groups; ++g) {
    GemmParams part = params;
    part.x += g * weight.cols;
    part.weight[0] = weight.row(g * rows_per_group);
    part.rows = part.rows_per_group = static_cast<int>(rows_per_group);
    if (part.out != nullptr) part.out += g * rows_per_group;
    if (part.out_half != nullptr) part.out_half += g * rows_per_group;
    TANDEM_TRY(
        launch_gemm_rows(exec, weight.dtype, /*small=*/true, part, static_cast<int>(tiles_x)));
  }
  return {};
}

Status sort_by_expert(
    const Exec& exec, ConstIntRows expert_ids, int64_t num_experts, ExpertOrder& out) {
  const int64_t num_slots = expert_ids.rows * expert_ids.cols;
  int32_t* order = exec.scratch->take<int32_t>(num_slots);
  int32_t* offsets = exec.scratch->take<int32_t>(num_experts + 1);
  out = {order, offsets, num_slots, num_experts, expert_ids.cols};
  return launch(
      "sort_by_expert", sort_kernel, dim3(static_cast<unsigned>(num_experts + 1)),
      dim3(kSortThreads), 0, exec.stream, expert_ids.data, expert_ids.stride,
      static_cast<int>(expert_ids.cols), static_cast<int>(num_slots), order, offsets);
}

Status gemm_gate_up(const Exec& exec, const GateUpArgs& args) {
  const WeightView& gate = args.gate.first;
  const WeightView& up = args.up.first;
  TANDEM_TRY(check_weight("gemm_gate_up", gate, args.x.k));
  TANDEM_REQUIRE(
      gate.dtype == up.dtype && gate.rows == up.rows && gate.cols == up.cols &&
          gate.row_bytes == up.row_bytes && args.gate.expert_bytes == args.up.expert_bytes,
      "gemm_gate_up: gate and up differ in type or shape");
  GemmParams params = base_params(args.x, gate);
  params.weight[1] = up.data;
  params.out_half = args.hidden.data;
  params.out_half_stride = args.hidden.stride;
  params.limit = args.limit;
  int64_t tiles_x = (args.x.rows + kTileX - 1) / kTileX;
  if (args.order != nullptr) {
    tiles_x = use_order(params, *args.order, args.gate.expert_bytes);
    params.gather_divisor = static_cast<int>(args.order->top_k);
    params.slot_weights = args.slot_weights.data;
    params.slot_weights_stride = args.slot_weights.stride;
  }
  return launch_gemm_gate_up(
      exec, gate.dtype, is_small(gate.rows, 128, tiles_x), params, static_cast<int>(tiles_x));
}

Status gemm_expert_down(const Exec& exec, const ExpertDownArgs& args) {
  const WeightView& down = args.down.first;
  TANDEM_TRY(check_weight("gemm_expert_down", down, args.hidden.k));
  GemmParams params = base_params(args.hidden, down);
  params.out = args.out.data;
  params.out_stride = args.out.stride;
  params.scatter = true;
  const int64_t tiles_x = use_order(params, *args.order, args.down.expert_bytes);
  return launch_gemm_rows(
      exec, down.dtype, is_small(down.rows, 256, tiles_x), params, static_cast<int>(tiles_x));
}

Status gemm_linear(const Exec& exec, ConstRows x, const WeightView& weight, Rows out) {
  Scratch::Frame frame(*exec.scratch);
  GemmArgs args;
  TANDEM_TRY(to_fragment_rows(exec, x, args.x));
  args.weight = weight;
  args.out = out;
  return gemm(exec, args);
}

}  // namespace tandem::cuda
