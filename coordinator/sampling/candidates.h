#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

/// A token that may be drawn.
struct Candidate {
  float logit = 0.0f;
  float weight = 0.0f;  // e^((logit - peak) / temperature), where that matters
  int32_t id = 0;
};

/// The order of the sampling rules: largest logit first, lowest id on ties.
inline bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// Leaves in `out` the first k of `logits` in rank order, sorted; fewer if there are fewer finite
/// ones. Weights are not set.
///
/// Limits: 1 <= k <= kTopKMax.
/// Cost:   one pass; no allocation once out has room for select_top_room(k).
void select_top(std::span<const float> logits, size_t k, std::vector<Candidate>* out);
size_t select_top_room(size_t k);

/// The shortest prefix in rank order whose weights sum to at least `target`.
///
/// Reorders `candidates` so that the prefix comes first and ends with its last-ranked member; sorts
/// no more than that needs. All of them if they do not reach the target.
/// Returns the length of the prefix, at least 1.
/// Limits: at least one candidate.
/// Cost:   O(candidates).
size_t rank_prefix(std::span<Candidate> candidates, double target);

}  // namespace tandem
