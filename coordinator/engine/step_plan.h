#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

/// A running sequence as the plan sees it.
struct SequenceView {
  int64_t num_tokens = 0;  // known: prompt and generated
  int64_t num_done = 0;    // processed by the model; < num_tokens
};

struct StepLimits {
  int64_t max_rows = 512;
  int64_t prefill_rows_beside_decode = 128;  // so that a long prompt does not stall the others
};

/// Rows that one sequence contributes to a step, from its num_done on.
struct PlannedRows {
  int64_t sequence_idx = 0;
  int64_t num_rows = 0;
};

/// The next step: one row of every sequence that has one token left, then prompts in order. A
/// prompt is cut at absolute multiples of kChunkGridTokens, so that its chunks do not depend on
/// what else runs; only when less than that is left of the step is it cut there, so that it
/// always moves. Pure: no clock, no I/O. Empty only if there are no sequences.
/// Limits: max_rows >= 1.
std::vector<PlannedRows> plan_step(
    std::span<const SequenceView> sequences, const StepLimits& limits);

}  // namespace tandem
