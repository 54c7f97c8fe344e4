#pragma once

#include <span>
#include <string>

#include "apps/answer.h"
#include "apps/runtime.h"
#include "base/status.h"

namespace tandem {

/// {"source", "prompt_tokens", "ctx", "top_k", "steps": [{"step", "selected", "top_logprobs"}]}.
/// `bytes` is exact; `text` has U+FFFD where they are no UTF-8.
/// Errors: those of FileSink.
Status dump_logprobs(
    const LoadedModel& loaded, const AnswerListener& answer, int64_t top_k, int64_t context_tokens,
    const std::string& path);

/// {"source", "prompt_tokens", "argmax", "logits"} of the token after `prompt`.
/// Errors: the pipeline's and those of FileSink.
Status dump_logits(Runtime& runtime, std::span<const int32_t> prompt, const std::string& path);

}  // namespace tandem
