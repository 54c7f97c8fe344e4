#include "coordinator/engine/step_plan.h"

#include <algorithm>

#include "base/limits.h"

namespace tandem {
namespace {

/// Rows that a prompt takes from a budget: to its end, or to the last grid line within reach, or
/// all of a budget that reaches none.
int64_t prompt_rows(const SequenceView& sequence, int64_t budget) {
  const int64_t left = sequence.num_tokens - sequence.num_done;
  if (left <= budget) return left;
  const int64_t end = (sequence.num_done + budget) / kChunkGridTokens * kChunkGridTokens;
  return end > sequence.num_done ? end - sequence.num_done : budget;
}

}  // namespace

std::vector<PlannedRows> plan_step(
    std::span<const SequenceView> sequences, const StepLimits& limits) {
  std::vector<PlannedRows> plan;
  int64_t budget = limits.max_rows;
  for (size_t i = 0; i < sequences.size() && budget > 0; ++i) {
    if (sequences[i].num_tokens - sequences[i].num_done != 1) continue;
    plan.push_back({static_cast<int64_t>(i), 1});
    --budget;
  }
  if (!plan.empty()) budget = std::min(budget, limits.prefill_rows_beside_decode);
  for (size_t i = 0; i < sequences.size() && budget > 0; ++i) {
    if (sequences[i].num_tokens - sequences[i].num_done <= 1) continue;
    const int64_t num_rows = prompt_rows(sequences[i], budget);
    plan.push_back({static_cast<int64_t>(i), num_rows});
    budget -= num_rows;
  }
  return plan;
}

}  // namespace tandem
