// A radix select on the scores' bits, mapped so that they order as the scores do: three passes of
// 11, 11 and 10 bits find the bits of the top_k-th highest score, a last one writes the indices of
// the scores above it, and of as many equal ones as are left, in order. One CTA a row; the scores
// of rows of up to kHeldItems * kThreads stay in registers between the passes.

#include "kernels/index_select/select_top_k.h"

#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"

namespace tandem::detail {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr int kHeldItems = 16;  // scores of one thread and round
constexpr int kRoundItems = kHeldItems * kThreads;
constexpr int kBins = 2048;

/// Unsigned order of the result is the order of the scores; 0.0 and -0.0 are equal, NaN is lowest.
__device__ __forceinline__ uint32_t ordered_bits(float score) {
  if (isnan(score)) return 0;
  const uint32_t bits = __float_as_uint(score + 0.0f);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

struct SelectShared {
  uint32_t histogram[kBins];
  uint32_t warp_sums[kWarps];
  uint32_t bin;    // of the top_k-th highest score
  uint32_t above;  // scores in higher bins
  // Counts of the last pass by round item and warp: greater, equal.
  uint32_t greater[kHeldItems * kWarps];
  uint32_t equal[kHeldItems * kWarps];
};

/// The sum of `value` over the threads before this one, and over all of them.
__device__ __forceinline__ uint32_t
exclusive_scan(uint32_t value, uint32_t* warp_sums, uint32_t& total) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  uint32_t inclusive = value;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t below = __shfl_up_sync(0xffffffff, inclusive, distance);
    if (lane >= distance) inclusive += below;
  }
  if (lane == 31) warp_sums[warp] = inclusive;
  __syncthreads();
  uint32_t warp_total = warp_sums[lane];
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const uint32_t below = __shfl_up_sync(0xffffffff, warp_total, distance);
    if (lane >= distance) warp_total += below;
  }
  total = __shfl_sync(0xffffffff, warp_total, 31);
  const uint32_t before = __shfl_sync(0xffffffff, warp_total, max(warp - 1, 0));
  __syncthreads();
  return (warp > 0 ? before : 0) + inclusive - value;
}

/// Finds the bin, from the highest down, in which the `wanted`-th score lies.
__device__ __forceinline__ void find_bin(SelectShared& shared, uint32_t wanted) {
  constexpr int kPerThread = kBins / kThreads;
  uint32_t counts[kPerThread];
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    counts[i] = shared.histogram[kBins - 1 - (threadIdx.x * kPerThread + i)];
    sum += counts[i];
  }
  uint32_t total = 0;
  uint32_t above = exclusive_scan(sum, shared.warp_sums, total);
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (above < wanted && wanted <= above + counts[i]) {
      shared.bin = kBins - 1 - (threadIdx.x * kPerThread + i);
      shared.above = above;
    }
    above += counts[i];
  }
  __syncthreads();
}

// Grid: one CTA for each row.
__global__ __launch_bounds__(kThreads) void select_top_k_kernel(
    const __grid_constant__ SelectTopKArgs args) {
  __shared__ SelectShared shared;
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const int row = blockIdx.x;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int top_k = static_cast<int>(args.selection.cols);
  const int count = (args.pos[row] + 1) / static_cast<int>(args.ratio);
  int32_t* selection = args.selection.data + row * args.selection.stride;
  if (count <= top_k) {
    for (int i = threadIdx.x; i < top_k; i += kThreads) selection[i] = i < count ? i : -1;
    return;
  }

  const float* scores = args.scores.data + row * args.scores.stride;
  const int num_rounds = (count + kRoundItems - 1) / kRoundItems;
  uint32_t keys[kHeldItems];
  const auto load_round = [&](int round) {
#pragma unroll
    for (int i = 0; i < kHeldItems; ++i) {
      const int idx = round * kRoundItems + i * kThreads + static_cast<int>(threadIdx.x);
      keys[i] = idx < count ? ordered_bits(scores[idx]) : 0;
    }
  };
  const auto items_of = [&](int round) {  // items of this thread that exist
    const int left = count - round * kRoundItems - static_cast<int>(threadIdx.x);
    return left <= 0 ? 0 : min(kHeldItems, (left + kThreads - 1) / kThreads);
  };
  if (num_rounds == 1) load_round(0);

  uint32_t threshold = 0;  // the bits found so far
  auto wanted = static_cast<uint32_t>(top_k);
#pragma unroll
  for (int pass = 0; pass < 3; ++pass) {
    const int shift = pass == 0 ? 21 : (pass == 1 ? 10 : 0);
    const uint32_t bin_mask = pass == 2 ? 1023 : 2047;
    for (int i = threadIdx.x; i < kBins; i += kThreads) shared.histogram[i] = 0;
    __syncthreads();
    for (int round = 0; round < num_rounds; ++round) {
      if (num_rounds > 1) load_round(round);
      const int num_items = items_of(round);
#pragma unroll
      for (int i = 0; i < kHeldItems; ++i) {
        const bool above_matches =
            pass == 0 || (keys[i] >> (pass == 1 ? 21 : 10)) == (threshold >> (pass == 1 ? 21 : 10));
        if (i < num_items && above_matches) {
          atomicAdd(&shared.histogram[(keys[i] >> shift) & bin_mask], 1U);
        }
      }
    }
    __syncthreads();
    find_bin(shared, wanted);
    threshold |= shared.bin << shift;
    wanted -= shared.above;
    __syncthreads();
  }

  // `wanted` scores equal to the threshold are taken, the lowest indices first.
  uint32_t greater_before = 0;
  uint32_t equal_before = 0;
  for (int round = 0; round < num_rounds; ++round) {
    if (num_rounds > 1) load_round(round);
    const int num_items = items_of(round);
    uint32_t greater_votes[kHeldItems];
    uint32_t equal_votes[kHeldItems];
#pragma unroll
    for (int i = 0; i < kHeldItems; ++i) {
      greater_votes[i] = __ballot_sync(0xffffffff, i < num_items && keys[i] > threshold);
      equal_votes[i] = __ballot_sync(0xffffffff, i < num_items && keys[i] == threshold);
      if (lane == 0) {
        shared.greater[i * kWarps + warp] = __popc(greater_votes[i]);
        shared.equal[i * kWarps + warp] = __popc(equal_votes[i]);
      }
    }
    __syncthreads();
    const bool scans = threadIdx.x < kHeldItems * kWarps;
    const uint32_t own_greater = scans ? shared.greater[threadIdx.x] : 0;
    const uint32_t own_equal = scans ? shared.equal[threadIdx.x] : 0;
    uint32_t total_greater = 0;
    uint32_t total_equal = 0;
    const uint32_t scan_greater = exclusive_scan(own_greater, shared.warp_sums, total_greater);
    const uint32_t scan_equal = exclusive_scan(own_equal, shared.warp_sums, total_equal);
    if (scans) {
      shared.greater[threadIdx.x] = greater_before + scan_greater;
      shared.equal[threadIdx.x] = equal_before + scan_equal;
    }
    __syncthreads();
    const uint32_t lanes_before = (1U << lane) - 1;
#pragma unroll
    for (int i = 0; i < kHeldItems; ++i) {
      if (i >= num_items) continue;
      const uint32_t greater =
          shared.greater[i * kWarps + warp] + __popc(greater_votes[i] & lanes_before);
      const uint32_t equal =
          shared.equal[i * kWarps + warp] + __popc(equal_votes[i] & lanes_before);
      if (keys[i] > threshold || (keys[i] == threshold && equal < wanted)) {
        selection[greater + min(equal, wanted)] =
            round * kRoundItems + i * kThreads + static_cast<int>(threadIdx.x);
      }
    }
    greater_before += total_greater;
    equal_before += total_equal;
    __syncthreads();
  }
}

}  // namespace

Status select_top_k_cuda(const Exec& exec, const SelectTopKArgs& args) {
  return cuda::launch(
      "select_top_k", select_top_k_kernel, dim3(static_cast<unsigned>(args.selection.rows)),
      dim3(kThreads), 0, exec.stream, args);
}

}  // namespace tandem::detail
