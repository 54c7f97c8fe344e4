#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "worker/stage_executor.h"

namespace tandem {

/// Which context lengths to measure. Frontiers: ctx_start, then the last + step_incr, or
/// ceil(last * step_mul) if step_mul > 1, the last one clipped to ctx_max.
struct FrontierOptions {
  int64_t ctx_start = 2048;
  int64_t ctx_max = 32768;
  double step_mul = 1;
  int64_t step_incr = 2048;
  int64_t gen_tokens = 128;  // 0: prefill only
};

/// What was measured at one context length.
struct FrontierResult {
  int64_t ctx_tokens = 0;
  int64_t prefill_tokens = 0;  // since the last frontier
  double prefill_seconds = 0;
  int64_t gen_tokens = 0;
  double gen_seconds = 0;
  double first_token_seconds = 0;  // part of gen_seconds
  int64_t state_bytes = 0;         // what save() writes at this length

  double prefill_tps() const { return double(prefill_tokens) / prefill_seconds; }
  double gen_tps() const { return gen_seconds > 0 ? double(gen_tokens) / gen_seconds : 0; }
  /// Without the first token.
  double gen_tps_steady() const;
};

/// Errors: kInvalidArgument if the options contradict each other or the stage's context is too
/// short.
Result<std::vector<int64_t>> list_frontiers(const FrontierOptions& options, int64_t context_tokens);

/// For each frontier: prefills the tokens since the last one (timed), decodes gen_tokens tokens one
/// by one, the likeliest that is not `excluded_token` (timed), and takes the bank back. Bank 0 is
/// reset before and after. Decoding starts from the logits of the frontier's last token, which the
/// prefill computes.
///
/// Errors: kInvalidArgument as list_frontiers, or if `tokens` are fewer than the last frontier; the
/// stage's. Threads: the stage's owner.
Status run_frontiers(
    StageExecutor& stage, std::span<const int32_t> tokens, const FrontierOptions& options,
    int32_t excluded_token, const Clock& clock,
    const std::function<void(const FrontierResult&)>& report);

}  // namespace tandem
