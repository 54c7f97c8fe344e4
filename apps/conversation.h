#pragma once

#include <string>
#include <vector>

#include "apps/answer.h"
#include "apps/runtime.h"
#include "model/spec/prompt.h"

namespace CLI {
class App;
}

namespace tandem {

/// Options of every subcommand that samples.
struct SamplingOptions {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.05f;
  int64_t top_k = 0;
  uint64_t seed = 0;  // 0: from the system
  float presence_penalty = 0;
  float frequency_penalty = 0;
  float repetition_penalty = 1;
  std::vector<std::string> stop;
  int64_t max_tokens = 4096;
};
void add_sampling_options(CLI::App& command, SamplingOptions& options);
SamplingParams sampling_params(const SamplingOptions& options);
/// options.seed, or one from the system.
uint64_t seed_or_random(uint64_t seed);

/// Adds --think, --think-max and --nothink. Thinking is on by default.
void add_think_options(CLI::App& command, ThinkMode& mode);

/// A request that answers `messages` in `mode`.
/// Errors: the renderer's and the tokenizer's.
Result<GenerationRequest> chat_request(
    const LoadedModel& loaded, std::span<const Message> messages, ThinkMode mode,
    const SamplingOptions& options);

}  // namespace tandem
