#include "coordinator/sampling/sampling_params.h"

#include "base/limits.h"

namespace tandem {
namespace {

/// A NaN fails both comparisons, so it is out of every range.
template <class T>
Status check_range(const char* field, T value, T low, T high) {
  TANDEM_REQUIRE(
      value >= low && value <= high,
      str_cat(field, " is ", value, ", must be from ", low, " to ", high));
  return {};
}

Status check_logit_bias(const std::vector<TokenBias>& logit_bias, int64_t vocab_size) {
  TANDEM_REQUIRE(
      static_cast<int64_t>(logit_bias.size()) <= kLogitBiasMax,
      str_cat("logit_bias has ", logit_bias.size(), " entries, must be from 0 to ", kLogitBiasMax));
  int64_t previous_id = -1;
  for (const TokenBias& entry : logit_bias) {
    TANDEM_TRY(check_range<int64_t>("logit_bias token id", entry.id, 0, vocab_size - 1));
    TANDEM_REQUIRE(
        entry.id > previous_id,
        str_cat("logit_bias has token id ", entry.id, " after ", previous_id, ", must ascend"));
    TANDEM_TRY(check_range("logit_bias value", entry.bias, -100.0f, 100.0f));
    previous_id = entry.id;
  }
  return {};
}

}  // namespace

Status validate(const SamplingParams& params, int64_t vocab_size) {
  TANDEM_TRY(check_range<int64_t>("vocabulary size", vocab_size, 1, kVocabMax));
  TANDEM_TRY(check_range("temperature", params.temperature, 0.0f, 100.0f));
  TANDEM_TRY(check_range("top_p", params.top_p, 0.0f, 1.0f));
  TANDEM_TRY(check_range("min_p", params.min_p, 0.0f, 1.0f));
  TANDEM_TRY(check_range<int64_t>("top_k", params.top_k, 0, kVocabMax));
  TANDEM_TRY(check_range("presence_penalty", params.presence_penalty, -2.0f, 2.0f));
  TANDEM_TRY(check_range("frequency_penalty", params.frequency_penalty, -2.0f, 2.0f));
  TANDEM_TRY(check_range("repetition_penalty", params.repetition_penalty, 0.01f, 100.0f));
  TANDEM_TRY(check_logit_bias(params.logit_bias, vocab_size));
  TANDEM_TRY(check_range<int64_t>("num_logprobs", params.num_logprobs, 0, kLogprobsMax));
  TANDEM_REQUIRE(
      params.logprobs || params.num_logprobs == 0,
      str_cat("num_logprobs is ", params.num_logprobs, ", must be 0 unless logprobs is set"));
  return {};
}

}  // namespace tandem
