#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "coordinator/engine/pipeline.h"

namespace tandem {

enum class LogitsWanted { kAll, kLast };

/// Called with the position of a token and the logits that follow it.
using LogitsCallback = std::function<void(int64_t pos, std::span<const float> logits)>;

/// Runs `tokens` through bank 0, which is reset before and after, and hands out logits.
/// Threads: the pipeline's owner, while no engine uses it.
/// Errors: kInvalidArgument if the tokens do not fit the context; the pipeline's.
Status for_each_logits(
    Pipeline& pipeline, std::span<const int32_t> tokens, LogitsWanted wanted,
    const LogitsCallback& callback);

/// ln p(token) under the logits, in float64.
double log_probability(std::span<const float> logits, int32_t token);

}  // namespace tandem
