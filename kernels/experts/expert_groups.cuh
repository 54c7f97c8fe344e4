#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/linear/tile_dot.cuh"

namespace tandem::cuda {

inline constexpr int kExpertRowsMax = 16;  // activation rows of a pass
inline constexpr int kExpertTopKMax = 16;
inline constexpr int kExpertPairsMax = kExpertRowsMax * kExpertTopKMax;

/// The work of a pass: each group is an expert and up to four (row, slot) pairs that chose it, as
/// many as one matrix instruction multiplies. An expert that more rows chose has more groups. In
/// shared memory.
struct ExpertGroups {
  int count;
  int expert[kExpertPairsMax];
  int8_t num_pairs[kExpertPairsMax];
  int8_t row[kExpertPairsMax][kQuadRows];
  int16_t middle_row[kExpertPairsMax][kQuadRows];  // row * (top_k + 1) + slot
};

/// Builds the groups with the whole CTA of kNumThreads >= kExpertPairsMax threads, in the order in
/// which their first pairs appear. Ends with a barrier.
template <int kNumThreads>
__device__ __forceinline__ void build_groups(
    const int32_t* expert_ids, int64_t stride, int num_rows, int top_k, ExpertGroups& groups) {
  static_assert(kNumThreads >= kExpertPairsMax);
  __shared__ int ids[kExpertPairsMax];
  __shared__ int starts[kNumThreads];  // 1: the pair begins a group
  const int idx = threadIdx.x;
  const int num_pairs = num_rows * top_k;
  const bool is_pair = idx < num_pairs;
  if (is_pair) ids[idx] = expert_ids[idx / top_k * stride + idx % top_k];
  __syncthreads();
  const int own = is_pair ? ids[idx] : -1;
  int before = 0;  // pairs of this expert in front of this one
#pragma unroll 8
  for (int i = 0; i < num_pairs; ++i) before += i < idx && ids[i] == own ? 1 : 0;
  const bool starts_group = is_pair && before % kQuadRows == 0;
  starts[idx] = starts_group ? 1 : 0;
  const int count = __syncthreads_count(starts_group);
  if (starts_group) {
    int rank = 0;
#pragma unroll 8
    for (int i = 0; i < num_pairs; ++i) rank += i < idx ? starts[i] : 0;
    int found = 0;
#pragma unroll 8
    for (int i = 0; i < num_pairs; ++i) {
      if (i < idx || ids[i] != own || found == kQuadRows) continue;
      groups.row[rank][found] = static_cast<int8_t>(i / top_k);
      groups.middle_row[rank][found] = static_cast<int16_t>(i + i / top_k);
      ++found;
    }
    groups.expert[rank] = own;
    groups.num_pairs[rank] = static_cast<int8_t>(found);
  }
  if (idx == 0) groups.count = count;
  __syncthreads();
}

/// silu(min(gate, limit)) * clamp(up, -limit, limit) * weight
__device__ __forceinline__ float activate(float gate, float up, float limit, float weight) {
  const float g = fminf(gate, limit);
  const float u = fminf(fmaxf(up, -limit), limit);
  return g * (1.0f / (1.0f + expf(-g))) * u * weight;
}

}  // namespace tandem::cuda
