#include "coordinator/engine/score.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace tandem {
namespace {

/// Rows with logits in one step: a full vocabulary each, so fewer than a prompt's chunk.
constexpr int64_t kScoredRowsMax = kChunkGridTokens;

}  // namespace

Status for_each_logits(
    Pipeline& pipeline, std::span<const int32_t> tokens, LogitsWanted wanted,
    const LogitsCallback& callback) {
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  TANDEM_REQUIRE(num_tokens >= 1, "there are no tokens to run");
  TANDEM_REQUIRE(
      num_tokens <= pipeline.context_tokens(), str_cat(
                                                   num_tokens, " tokens do not fit the context of ",
                                                   pipeline.context_tokens(), "; raise --ctx"));
  TANDEM_TRY(pipeline.reset(0));
  const int64_t rows_max = wanted == LogitsWanted::kAll
                               ? std::min(pipeline.max_rows(), kScoredRowsMax)
                               : pipeline.max_rows();
  StepBatch batch;
  for (int64_t begin = 0; begin < num_tokens; begin += rows_max) {
    const int64_t end = std::min(num_tokens, begin + rows_max);
    batch.rows.clear();
    for (int64_t pos = begin; pos < end; ++pos) {
      const bool wants = wanted == LogitsWanted::kAll || pos + 1 == num_tokens;
      batch.rows.push_back({0, static_cast<int32_t>(pos), tokens[pos], wants, Phase::kPrefill});
    }
    TANDEM_TRY_ASSIGN(const ConstRows logits, pipeline.run(batch));
    for (int64_t row = 0; row < logits.rows; ++row) {
      const int64_t pos = wanted == LogitsWanted::kAll ? begin + row : num_tokens - 1;
      callback(pos, {logits.row(row), static_cast<size_t>(logits.cols)});
    }
  }
  return pipeline.reset(0);
}

double log_probability(std::span<const float> logits, int32_t token) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return static_cast<double>(logits[token]) - largest - std::log(sum);
}

}  // namespace tandem
