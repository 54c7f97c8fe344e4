#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"

namespace tandem {

/// Added to one token's logit.
struct TokenBias {
  int32_t id = 0;
  float bias = 0.0f;  // [-100, 100]
};

/// How a token is drawn from logits. The defaults are the runtime's own: temperature 1 with a
/// relative floor of 0.05.
struct SamplingParams {
  float temperature = 1.0f;  // [0, 100]; 0 takes the largest logit
  float top_p = 1.0f;        // [0, 1]; 1 keeps all, 0 keeps the most probable token
  float min_p = 0.05f;       // [0, 1]; relative to the most probable token; 0 keeps all
  int64_t top_k = 0;         // [0, kVocabMax]; 0 keeps all, more than kTopKMax means kTopKMax
  std::optional<uint64_t> seed = std::nullopt;  // empty: the caller of Sampler::create supplies one
  float presence_penalty = 0.0f;                // [-2, 2]; subtracted once for each generated token
  float frequency_penalty = 0.0f;   // [-2, 2]; subtracted for each occurrence of a generated token
  float repetition_penalty = 1.0f;  // [0.01, 100]; 1 is off; counts the prompt too
  std::vector<TokenBias> logit_bias = {};  // strictly ascending by id; at most kLogitBiasMax
  bool logprobs = false;                   // compute the log-probability of the chosen token
  int64_t num_logprobs = 0;  // [0, kLogprobsMax] alternatives; more than 0 needs logprobs
};

/// Checks every field against the range beside it.
///
/// Errors: kInvalidArgument that names the field, its value and the range.
Status validate(const SamplingParams& params, int64_t vocab_size);

}  // namespace tandem
