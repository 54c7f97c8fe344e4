#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace tandem::cuda {

inline constexpr int kExpertRowsMax = 16;  // activation rows of a pass
inline constexpr int kExpertTopKMax = 16;
inline constexpr int kExpertPairsMax = kExpertRowsMax * kExpertTopKMax;

/// The distinct experts that the rows of a pass chose, in the order in which they first appear, and
/// for each the slot that a row gave it. In shared memory.
struct ExpertGroups {
  int count;
  int expert[kExpertPairsMax];
  int8_t slot[kExpertPairsMax][kExpertRowsMax];  // -1: the row did not choose the expert
  int ids[kExpertPairsMax];                      // [row * top_k + slot]
  int rank[kExpertPairsMax];                     // of a first appearance; else -1
};

/// Builds the groups with the whole CTA of kNumThreads >= kExpertPairsMax threads. Ends with a
/// barrier.
template <int kNumThreads>
__device__ __forceinline__ void build_groups(
    const int32_t* expert_ids, int64_t stride, int num_rows, int top_k, ExpertGroups& groups) {
  static_assert(kNumThreads >= kExpertPairsMax);
  const int idx = threadIdx.x;
  const int num_pairs = num_rows * top_k;
  if (idx < num_pairs) groups.ids[idx] = expert_ids[idx / top_k * stride + idx % top_k];
  __syncthreads();
  int first = idx;  // where this pair's expert first appears
  if (idx < num_pairs) {
    for (int i = idx - 1; i >= 0; --i) {
      if (groups.ids[i] == groups.ids[idx]) first = i;
    }
    groups.rank[idx] = first == idx ? 0 : -1;
  }
  const int num_first = __syncthreads_count(idx < num_pairs && first == idx);
  if (idx < num_pairs && first == idx) {
    int rank = 0;
    for (int i = 0; i < idx; ++i) rank += groups.rank[i] >= 0 ? 1 : 0;
    groups.expert[rank] = groups.ids[idx];
    for (int t = 0; t < kExpertRowsMax; ++t) {
      int slot = -1;
      for (int k = 0; t < num_rows && k < top_k; ++k) {
        if (groups.ids[t * top_k + k] == groups.ids[idx]) slot = k;
      }
      groups.slot[rank][t] = static_cast<int8_t>(slot);
    }
  }
  if (idx == 0) groups.count = num_first;
  __syncthreads();
}

/// silu(min(gate, limit)) * clamp(up, -limit, limit) * weight
__device__ __forceinline__ float activate(float gate, float up, float limit, float weight) {
  const float g = fminf(gate, limit);
  const float u = fminf(fmaxf(up, -limit), limit);
  return g * (1.0f / (1.0f + expf(-g))) * u * weight;
}

}  // namespace tandem::cuda
