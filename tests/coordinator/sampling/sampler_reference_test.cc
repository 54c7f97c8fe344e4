// The sampler against the rules written out plainly: a full sort, float64, no shortcuts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "coordinator/sampling/sampler.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

struct Entry {
  int32_t id;
  float logit;
  double p;
};

int32_t walk(const std::vector<Entry>& entries, double u) {
  double sum = 0.0;
  for (const Entry& entry : entries) sum += entry.p;
  double r = u * sum;
  for (const Entry& entry : entries) {
    r -= entry.p;
    if (r <= 0.0) return entry.id;
  }
  return entries.back().id;
}

int32_t reference_draw(const std::vector<float>& logits, const SamplingParams& params, double u) {
  const float max = *std::max_element(logits.begin(), logits.end());
  std::vector<Entry> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double x = (static_cast<double>(logits[i]) - static_cast<double>(max)) /
                     static_cast<double>(params.temperature);
    all.push_back({static_cast<int32_t>(i), logits[i], std::exp(x)});
  }
  const double min_p = static_cast<double>(params.min_p);
  std::vector<Entry> kept;
  if (params.top_k == 0 && params.top_p >= 1.0f) {
    for (const Entry& entry : all) {
      if (entry.p >= min_p) kept.push_back(entry);
    }
    return walk(kept, u);
  }
  std::stable_sort(
      all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.logit > b.logit; });
  if (params.top_k > 0) {
    all.resize(std::min(all.size(), static_cast<size_t>(std::min(params.top_k, kTopKMax))));
  }
  double total = 0.0;
  for (const Entry& entry : all) total += entry.p;
  double cumulative = 0.0;
  for (const Entry& entry : all) {
    if (entry.p < min_p) break;
    kept.push_back(entry);
    cumulative += entry.p;
    if (cumulative >= static_cast<double>(params.top_p) * total) break;
  }
  return walk(kept, u);
}

std::vector<float> random_logits(Rng* rng, size_t size, float spread) {
  std::vector<float> logits(size);
  // The sum of uniforms has a peak and thin tails, roughly as logits have.
  for (float& logit : logits) {
    logit = spread * (rng->uniform() + rng->uniform() + rng->uniform() + rng->uniform() - 2.0f);
  }
  return logits;
}

TEST(SamplerReferenceTest, DrawsWhatThePlainRulesDraw) {
  // Float weights move a boundary by about 1e-7 of the range, so a draw would differ from float64
  // once in millions; with these seeds none does.
  const float temperatures[] = {0.3f, 0.7f, 1.0f, 2.0f};
  const float top_ps[] = {1.0f, 1.0f, 0.95f, 0.5f, 0.05f};
  const float min_ps[] = {0.0f, 0.05f, 0.3f, 1e-6f};
  const int64_t top_ks[] = {0, 0, 1, 40, 1024, 5000};
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Rng rng(seed);
    SamplingParams params;
    params.temperature = temperatures[rng.next() % 4];
    params.top_p = top_ps[rng.next() % 5];
    params.min_p = min_ps[rng.next() % 4];
    params.top_k = top_ks[rng.next() % 6];
    const size_t vocab_size = 1 + rng.next() % 3000;
    const std::vector<float> logits = random_logits(&rng, vocab_size, 1.0f + 20.0f * rng.uniform());
    auto created = Sampler::create(params, static_cast<int64_t>(vocab_size), seed);
    ASSERT_OK(created);
    Rng draws(seed);
    for (int i = 0; i < 3; ++i) {
      const Result<Choice> choice = created->choose(logits, false);
      ASSERT_OK(choice);
      ASSERT_EQ(choice->token, reference_draw(logits, params, static_cast<double>(draws.uniform())))
          << "seed=" << seed << " vocab_size=" << vocab_size << " T=" << params.temperature
          << " top_p=" << params.top_p << " min_p=" << params.min_p << " top_k=" << params.top_k;
    }
  }
}

TEST(SamplerReferenceTest, HandlesAFlatDistributionOverAFullVocabulary) {
  constexpr int64_t kVocabSize = 129280;
  const std::vector<float> logits(kVocabSize, 0.5f);
  SamplingParams params;
  params.top_p = 0.9f;
  auto created = Sampler::create(params, kVocabSize, 5);
  ASSERT_OK(created);
  Rng draws(5);
  for (int i = 0; i < 5; ++i) {
    const Result<Choice> choice = created->choose(logits, false);
    ASSERT_OK(choice);
    // All weights are 1 and ranks are ids, so the walk is arithmetic.
    const double kept = std::ceil(static_cast<double>(0.9f) * kVocabSize);
    const double r = static_cast<double>(draws.uniform()) * kept;
    EXPECT_EQ(choice->token, static_cast<int32_t>(std::ceil(r)) - 1);
  }
}

}  // namespace
}  // namespace tandem
