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
constexpr int kCountThreads = 1024;
constexpr int64_t kExpertsMax = 4096;

__device__ __forceinline__ uint32_t pack_clamped(float low, float high) {
  return pack_pair<__half>(
      fminf(fmaxf(low, -kHalfMax), kHalfMax), fminf(fmaxf(high, -kHalfMax), kHalfMax));
}

// Grid: (parts of a row, rows). A thread converts eight consecutive values, which go in pairs to
// four 16-byte parts; the four threads of a group of 32 fill these together. Past k it writes
// zeros.
__global__ __launch_bounds__(kConvertThreads) void convert_kernel(
    const float* x, int64_t x_stride, FragmentRows out) {
  pdl_wait();
  pdl_launch_dependents();
  const int first = (blockIdx.x * kConvertThreads + threadIdx.x) * 8;
  if (first >= (out.k + kStageValues - 1) / kStageValues * kStageValues) return;
  const float* source = x + blockIdx.y * x_stride + first;
  float v[8] = {};
  if (first < out.k && x_stride % 4 == 0) {
    const float4 low = *reinterpret_cast<const float4*>(source);
    const float4 high = *reinterpret_cast<const float4*>(source + 4);
    v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
    v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
  } else if (first < out.k) {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = source[i];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<uint32_t*>(out.data + out.offset(blockIdx.y, first + 2 * i)) =
        pack_clamped(v[2 * i], v[2 * i + 1]);
  }
}

// One CTA: each expert's rows and where they begin, at multiples of eight.
__global__ __launch_bounds__(kCountThreads) void count_kernel(
    const int32_t* ids, int64_t stride, int top_k, int num_slots, int num_experts, int32_t* begin,
    int32_t* count) {
  extern __shared__ int32_t counts[];  // [num_experts]
  pdl_wait();
  pdl_launch_dependents();
  for (int i = threadIdx.x; i < num_experts; i += kCountThreads) counts[i] = 0;
  __syncthreads();
  for (int slot = threadIdx.x; slot < num_slots; slot += kCountThreads) {
    atomicAdd(&counts[ids[slot / top_k * stride + slot % top_k]], 1);
  }
  __syncthreads();
  if (threadIdx.x >= 32) return;
  int before = 0;
  for (int first = 0; first < num_experts; first += 32) {
    const int expert = first + threadIdx.x;
    const int own = expert < num_experts ? counts[expert] : 0;
    const int padded = (own + 7) / 8 * 8;
    int inclusive = padded;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int below = __shfl_up_sync(0xffffffff, inclusive, distance);
      if (static_cast<int>(threadIdx.x) >= distance) inclusive += below;
    }
    if (expert < num_experts) {
      begin[expert] = before + inclusive - padded;
      count[expert] = own;
    }
    before += __shfl_sync(0xffffffff, inclusive, 31);
  }
}

// Grid: one CTA for each expert; it lists its slots in ascending order.
__global__ __launch_bounds__(kSortThreads) void sort_kernel(
    const int32_t* ids, int64_t stride, int top_k, int num_slots, const int32_t* begin,
    const int32_t* count, int32_t* order) {
  constexpr int kWarps = kSortThreads / 32;
  __shared__ int warp_counts[2][kWarps];
  pdl_wait();
  pdl_launch_dependents();
  const int expert = blockIdx.x;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  int next = begin[expert];
  const int end = next + count[expert];
  if (end + static_cast<int>(threadIdx.x) < (end + 7) / 8 * 8) order[end + threadIdx.x] = -1;

  for (int first = 0; first < num_slots && next < end; first += kSortThreads) {
    const int slot = first + threadIdx.x;
    const bool own = slot < num_slots && ids[slot / top_k * stride + slot % top_k] == expert;
    const uint32_t votes = __ballot_sync(0xffffffff, own);
    int* counts = warp_counts[first / kSortThreads % 2];
    if (lane == 0) counts[warp] = __popc(votes);
    __syncthreads();
    int before = 0;
    int all = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      before += i < warp ? counts[i] : 0;
      all += counts[i];
    }
    if (own) order[next + before + __popc(votes & ((1U << lane) - 1))] = slot;
    next += all;
  }
}

// Grid: (parts of a row, sorted rows). A thread copies 16 bytes; rows of nobody are left alone.
__global__ __launch_bounds__(kConvertThreads) void gather_kernel(
    FragmentRows x, const int32_t* order, const int32_t* begin, const int32_t* count,
    int num_experts, int top_k, FragmentRows out) {
  pdl_wait();
  pdl_launch_dependents();
  const int row = blockIdx.y;
  if (row >= begin[num_experts - 1] + count[num_experts - 1]) return;  // past the last sorted row
  const int slot = order[row];
  const int part = blockIdx.x * kConvertThreads + threadIdx.x;
  const int block = part / 8;
  if (slot < 0 || block >= (x.k + kStageValues - 1) / kStageValues) return;
  const int64_t source = slot / top_k;
  const auto* from = reinterpret_cast<const uint4*>(x.data + (block * x.block_rows + source) * 64);
  auto* to = reinterpret_cast<uint4*>(out.data + (block * out.block_rows + row) * 64);
  to[part % 8 ^ (row % 8)] = from[part % 8 ^ (source % 8)];
}

Status check_weight(const char* what, const WeightView& weight, int64_t k) {
  TANDEM_REQUIRE(
      weight.cols == k && weight.cols % 32 == 0 && weight.row_bytes % 16 == 0,
      str_cat(
          what, ": weight rows of ", weight.cols, " values in ", weight.row_bytes,
          " bytes for rows of ", k));
  return {};
}

/// Which kernel runs a product. All give the same bits on one kind of GPU but sm90's, whose matrix
/// unit rounds its sums in another place, so it is chosen by the shape of the weights only.
struct KernelChoice {
  bool sm90 = false;
  bool small = false;
};

KernelChoice choose_kernel(const Exec& exec, int64_t rows, int64_t tile_rows, int64_t num_tiles_x) {
  constexpr int64_t kTilesWanted = 192;  // fewer leave much of a large device idle
  int device = 0;
  int major = 0;
  KernelChoice choice;
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess;
  choice.sm90 = known && major == 9 && !exec.any_chip;
  choice.small = (rows + tile_rows - 1) / tile_rows * num_tiles_x < kTilesWanted;
  return choice;
}

Status launch_rows(const Exec& exec, DType dtype, const GemmParams& params, int64_t tiles_x) {
  const KernelChoice choice = choose_kernel(exec, params.rows, 256, tiles_x);
  const auto tiles = static_cast<int>(tiles_x);
  if (choice.sm90 && params.rows_per_group % 256 == 0) {
    return launch_gemm_rows_sm90(exec, dtype, params, tiles);
  }
  return launch_gemm_rows(
      exec, dtype, choice.small || params.rows_per_group % 256 != 0, params, tiles);
}

Status launch_gate_up(const Exec& exec, DType dtype, const GemmParams& params, int64_t tiles_x) {
  const KernelChoice choice = choose_kernel(exec, params.rows, 128, tiles_x);
  const auto tiles = static_cast<int>(tiles_x);
  return choice.sm90 ? launch_gemm_gate_up_sm90(exec, dtype, params, tiles)
                     : launch_gemm_gate_up(exec, dtype, choice.small, params, tiles);
}

GemmParams base_params(const FragmentRows& x, const WeightView& weight) {
  GemmParams params;
  params.x = x;
  params.weight[0] = weight.data;
  params.row_bytes = weight.row_bytes;
  params.rows = static_cast<int>(weight.rows);
  params.k = static_cast<int>(weight.cols);
  params.rows_per_group = 1 << 30;  // one group
  return params;
}

/// Makes the product run over sorted rows; returns the number of tiles of x to launch.
int64_t use_order(GemmParams& params, const ExpertOrder& order, int64_t expert_bytes) {
  params.order = order.order;
  params.begin = order.begin;
  params.count = order.count;
  params.num_experts = static_cast<int>(order.num_experts);
  params.top_k = static_cast<int>(order.top_k);
  params.expert_bytes = expert_bytes;
  // Each expert with rows has at most one tile that is not full.
  return order.num_slots / kTileX + std::min(order.num_experts, order.num_slots);
}

unsigned parts_grid(int64_t parts) {
  return static_cast<unsigned>((parts + kConvertThreads - 1) / kConvertThreads);
}

}  // namespace

Status take_fragment_rows(const Exec& exec, int64_t rows, int64_t k, FragmentRows& out) {
  const int64_t blocks = (k + kStageValues - 1) / kStageValues;
  const int64_t block_rows = (rows + 7) / 8 * 8;
  const int64_t size = (blocks * block_rows + kTileX) * kStageValues;
  out = {exec.scratch->take<__half>(size), rows, k, block_rows};
  if (k % kStageValues == 0) return {};
  return to_status(
      cudaMemsetAsync(out.data, 0, static_cast<size_t>(size) * sizeof(__half), exec.stream),
      "take_fragment_rows");
}

Status to_fragment_rows(const Exec& exec, ConstRows x, FragmentRows& out) {
  TANDEM_REQUIRE(x.cols % 32 == 0, str_cat("gemm: rows of ", x.cols, " values"));
  TANDEM_TRY(take_fragment_rows(exec, x.rows, x.cols, out));
  const dim3 grid(parts_grid((x.cols + 63) / 64 * 8), static_cast<unsigned>(x.rows));
  return launch(
      "to_fragment_rows", convert_kernel, grid, dim3(kConvertThreads), 0, exec.stream, x.data,
      x.stride, out);
}

Status gemm(const Exec& exec, const GemmArgs& args) {
  const WeightView& weight = args.weight;
  const int64_t rows_per_group = weight.rows / args.num_groups;
  TANDEM_TRY(check_weight("gemm", weight, args.x.k / args.num_groups));
  TANDEM_REQUIRE(
      args.num_groups == 1 || weight.cols % kStageValues == 0,
      str_cat("gemm: groups of ", weight.cols, " values"));
  GemmParams params = base_params(args.x, weight);
  params.out = args.out.data;
  params.out_stride = args.out.stride;
  params.out_half = args.out_half;
  const int64_t tiles_x = (args.x.rows + kTileX - 1) / kTileX;
  if (args.num_groups == 1) return launch_rows(exec, weight.dtype, params, tiles_x);
  if (rows_per_group % 128 == 0) {
    params.rows_per_group = static_cast<int>(rows_per_group);
    return launch_rows(exec, weight.dtype, params, tiles_x);
  }
  TANDEM_REQUIRE(
      rows_per_group % kStageValues == 0 || args.out_half.data == nullptr,
      str_cat("gemm: groups of ", rows_per_group, " rows"));
  for (int64_t g = 0; g < args.num_groups; ++g) {
    GemmParams part = params;
    part.x.data += g * (weight.cols / kStageValues) * args.x.block_rows * kStageValues;
    part.weight[0] = weight.row(g * rows_per_group);
    part.rows = static_cast<int>(rows_per_group);
    if (part.out != nullptr) part.out += g * rows_per_group;
    if (part.out_half.data != nullptr) {
      part.out_half.data += g * rows_per_group * args.out_half.block_rows;
    }
    TANDEM_TRY(launch_rows(exec, weight.dtype, part, tiles_x));
  }
  return {};
}

Status sort_by_expert(
    const Exec& exec, ConstIntRows expert_ids, int64_t num_experts, ExpertOrder& out) {
  TANDEM_REQUIRE(num_experts <= kExpertsMax, str_cat("gemm: ", num_experts, " experts"));
  const int64_t num_slots = expert_ids.rows * expert_ids.cols;
  const int64_t num_sorted = (num_slots + 7 * std::min(num_experts, num_slots) + 7) / 8 * 8;
  int32_t* order = exec.scratch->take<int32_t>(num_sorted);
  int32_t* begin = exec.scratch->take<int32_t>(num_experts);
  int32_t* count = exec.scratch->take<int32_t>(num_experts);
  out = {order, begin, count, num_slots, num_sorted, num_experts, expert_ids.cols};
  const auto top_k = static_cast<int>(expert_ids.cols);
  const auto slots = static_cast<int>(num_slots);
  TANDEM_TRY(launch(
      "count_by_expert", count_kernel, dim3(1), dim3(kCountThreads),
      static_cast<size_t>(num_experts) * sizeof(int32_t), exec.stream, expert_ids.data,
      expert_ids.stride, top_k, slots, static_cast<int>(num_experts), begin, count));
  return launch(
      "sort_by_expert", sort_kernel, dim3(static_cast<unsigned>(num_experts)), dim3(kSortThreads),
      0, exec.stream, expert_ids.data, expert_ids.stride, top_k, slots, begin, count, order);
}

Status gather_sorted(
    const Exec& exec, const FragmentRows& x, const ExpertOrder& order, FragmentRows& out) {
  TANDEM_TRY(take_fragment_rows(exec, order.num_sorted, x.k, out));
  const dim3 grid(parts_grid((x.k + 63) / 64 * 8), static_cast<unsigned>(order.num_sorted));
  return launch(
      "gather_sorted", gather_kernel, grid, dim3(kConvertThreads), 0, exec.stream, x, order.order,
      order.begin, order.count, static_cast<int>(order.num_experts), static_cast<int>(order.top_k),
      out);
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
  params.out_half = args.hidden;
  params.limit = args.limit;
  int64_t tiles_x = (args.x.rows + kTileX - 1) / kTileX;
  if (args.order != nullptr) {
    tiles_x = use_order(params, *args.order, args.gate.expert_bytes);
    params.slot_weights = args.slot_weights.data;
    params.slot_weights_stride = args.slot_weights.stride;
  }
  return launch_gate_up(exec, gate.dtype, params, tiles_x);
}

Status gemm_expert_down(const Exec& exec, const ExpertDownArgs& args) {
  const WeightView& down = args.down.first;
  TANDEM_TRY(check_weight("gemm_expert_down", down, args.hidden.k));
  GemmParams params = base_params(args.hidden, down);
  params.out = args.out.data;
  params.out_stride = args.out.stride;
  const int64_t tiles_x = use_order(params, *args.order, args.down.expert_bytes);
  return launch_rows(exec, down.dtype, params, tiles_x);
}

Status gemm_linear(const Exec& exec, ConstRows x, const WeightView& weight, Rows out) {
  Scratch::Frame frame(*exec.scratch);
  GemmArgs args;
  TANDEM_TRY(to_fragment_rows(exec, x, args.x));
  args.weight = weight;
  args.out = out;
  return gemm(exec, args);
}

Status gemm_linears(const Exec& exec, ConstRows x, const std::array<LinearPart, 2>& parts) {
  Scratch::Frame frame(*exec.scratch);
  GemmArgs args;
  TANDEM_TRY(to_fragment_rows(exec, x, args.x));
  for (const LinearPart& part : parts) {
    args.weight = part.weight;
    args.out = part.out;
    TANDEM_TRY(gemm(exec, args));
  }
  return {};
}

}  // namespace tandem::cuda
