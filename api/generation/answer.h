#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/errors/api_error.h"
#include "coordinator/engine/generation.h"

namespace tandem::api {

/// One sampled token as a client may see it.
struct TokenInfo {
  int32_t id = 0;
  std::string bytes;
  bool is_special = false;  // markers: listed as ids, not among log-probabilities
  std::optional<float> logprob;
  struct Alternative {
    std::string bytes;
    float logprob = 0;
  };
  std::vector<Alternative> top;
};

/// A part of an answer as it is generated, in order. For each choice: reasoning before content
/// before tool calls; the calls one after the other.
struct Delta {
  enum class Kind {
    kProgress,       // of the prompt
    kReasoning,      // text: more of it
    kContent,        // text: more of it
    kToolBegin,      // text: the name; tool_id is set
    kToolArguments,  // text: more of the arguments' JSON
    kToolEnd,
    kFinish,  // the choice is complete; finish is set
  };
  Kind kind = Kind::kContent;
  int choice_idx = 0;
  std::string text;
  int tool_idx = 0;
  std::string tool_id;
  FinishReason finish = FinishReason::kStop;  // of kFinish
  std::vector<TokenInfo> tokens;  // that this text came from; only if the request wants them
  int64_t prompt_done = 0;        // of kProgress
  int64_t prompt_total = 0;
  int64_t prompt_cached = 0;
  double prompt_seconds = 0;
};

struct AnswerCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text
};

/// One complete choice.
struct Answer {
  std::string reasoning;
  std::string content;
  std::vector<AnswerCall> calls;
  FinishReason finish = FinishReason::kStop;
  std::optional<std::string> stop_string;  // that ended it
  bool starts_in_reasoning = false;
  std::vector<TokenInfo> tokens;          // all of them; only if the request wants them
  std::vector<TokenInfo> content_tokens;  // those of `content`
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;      // of the prompt, not computed again
  int64_t completion_tokens = 0;  // with reasoning
  int64_t reasoning_tokens = 0;
};

struct Timings {
  double ttft_ms = 0;
  int64_t prefill_tokens = 0;  // computed
  int64_t prefill_cached_tokens = 0;
  std::optional<double> prefill_tok_s;
  std::optional<double> decode_tok_s;
};

/// What identifies a response, fixed before the first token.
struct ResponseHead {
  std::string id;
  int64_t created_s = 0;  // Unix time
  std::string model;
};

/// A complete response.
struct Completion {
  ResponseHead head;
  std::vector<Answer> choices;
  Usage usage;
  Timings timings;
  std::vector<int32_t> prompt_token_ids;  // only if the request wants them
};

}  // namespace tandem::api
