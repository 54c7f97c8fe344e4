#include "coordinator/sampling/candidates.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "coordinator/sampling/logit_scan.h"

namespace tandem {
namespace {

// Spare room, so that the selection runs once for many newcomers.
constexpr size_t kSelectSpare = 1024;

// Below this a sort is cheaper than further halving.
constexpr ptrdiff_t kSortSize = 32;

/// Cuts `out` to its first k and returns the logit a newcomer has to pass.
float keep_top(std::vector<Candidate>* out, size_t k) {
  const auto last = out->begin() + static_cast<ptrdiff_t>(k) - 1;
  std::nth_element(out->begin(), last, out->end(), ranks_before);
  const float floor = last->logit;
  out->resize(k);
  return floor;
}

}  // namespace

size_t select_top_room(size_t k) {
  return k + kSelectSpare;
}

void select_top(std::span<const float> logits, size_t k, std::vector<Candidate>* out) {
  out->clear();
  // Ids come in ascending order, so a newcomer that only equals the k-th ranks after it; it enters
  // and falls out at the next cut.
  float floor = -std::numeric_limits<float>::max();
  for_each_at_least(logits, floor, [&](int32_t id, float logit) {
    out->push_back({logit, 0.0f, id});
    if (out->size() == select_top_room(k)) floor = keep_top(out, k);
  });
  if (out->size() > k) keep_top(out, k);
  std::sort(out->begin(), out->end(), ranks_before);
}

size_t rank_prefix(std::span<Candidate> candidates, double target) {
  TANDEM_CHECK(!candidates.empty());
  // Everything before `low` is in the prefix and sums to `sum`; nothing from `high` on is.
  auto low = candidates.begin();
  auto high = candidates.end();
  double sum = 0.0;
  while (high - low > kSortSize) {
    const auto middle = low + (high - low) / 2;
    std::nth_element(low, middle, high, ranks_before);
    double left = 0.0;
    for (auto it = low; it != middle; ++it) left += static_cast<double>(it->weight);
    if (sum + left >= target) {
      high = middle;
    } else {
      sum += left;
      low = middle;
    }
  }
  std::sort(low, high, ranks_before);
  while (low != high) {
    sum += static_cast<double>(low->weight);
    ++low;
    if (sum >= target) break;
  }
  return static_cast<size_t>(low - candidates.begin());
}

}  // namespace tandem
