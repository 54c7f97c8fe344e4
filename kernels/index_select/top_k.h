#pragma once

#include <cstdint>

namespace tandem {

/// Writes the indices of the k highest scores to `selection`, ascending; of equal scores the lower
/// index wins. A NaN counts as the lowest.
///
/// Shapes: scores [count]; keys [2 * count], overwritten; selection [k].
/// Limits: 0 < k <= count.
/// Cost: a few passes over count values, whatever their order.
void select_top_k(
    const float* scores, int64_t count, int64_t k, uint32_t* keys, int32_t* selection);

}  // namespace tandem
