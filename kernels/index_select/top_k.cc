#include "kernels/index_select/top_k.h"

#include <array>
#include <bit>

namespace tandem {
namespace {

/// Unsigned order of the keys is the order of the floats; the two zeros are one value.
uint32_t sort_key(float x) {
  if (x != x) return 0;
  const auto bits = std::bit_cast<uint32_t>(x == 0.0f ? 0.0f : x);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

}  // namespace

void select_top_k(
    const float* scores, int64_t count, int64_t k, uint32_t* keys, int32_t* selection) {
  for (int64_t i = 0; i < count; ++i) keys[i] = sort_key(scores[i]);

  // Finds the k-th highest key byte by byte, from the top: each pass keeps the keys that share the
  // bytes found so far, and `wanted` is its rank among them.
  uint32_t* candidates = keys + count;
  const uint32_t* source = keys;
  int64_t num_candidates = count;
  int64_t wanted = k;
  uint32_t kth = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    std::array<int64_t, 256> histogram{};
    for (int64_t i = 0; i < num_candidates; ++i) ++histogram[(source[i] >> shift) & 255U];
    uint32_t byte = 255;
    while (histogram[byte] < wanted) wanted -= histogram[byte--];
    kth |= byte << shift;
    int64_t kept = 0;
    for (int64_t i = 0; i < num_candidates; ++i) {
      const uint32_t key = source[i];  // read before candidates[kept] is written: kept <= i
      if (((key >> shift) & 255U) == byte) candidates[kept++] = key;
    }
    num_candidates = kept;
    source = candidates;
  }

  // All above the k-th key, and the first `wanted` that equal it.
  int64_t num_selected = 0;
  for (int64_t i = 0; num_selected < k; ++i) {
    if (keys[i] > kth) {
      selection[num_selected++] = static_cast<int32_t>(i);
    } else if (keys[i] == kth && wanted > 0) {
      --wanted;
      selection[num_selected++] = static_cast<int32_t>(i);
    }
  }
}

}  // namespace tandem
