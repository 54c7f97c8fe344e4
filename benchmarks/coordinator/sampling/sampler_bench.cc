// One token's choice over a V4 vocabulary. Logits have a few strong tokens over a broad body, as a
// model's have; the flat case is the worst for the rank filters.

#include "coordinator/sampling/sampler.h"

#include <benchmark/benchmark.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace tandem {
namespace {

constexpr int64_t kVocabSize = 129280;

std::vector<float> model_like_logits() {
  Rng rng(11);
  std::vector<float> logits(kVocabSize);
  for (float& logit : logits) {
    logit = 4.0f * (rng.uniform() + rng.uniform() + rng.uniform() + rng.uniform() - 2.0f);
  }
  for (int i = 0; i < 40; ++i) {
    logits[static_cast<size_t>(rng.next() % kVocabSize)] = 8.0f + 8.0f * rng.uniform();
  }
  return logits;
}

void choose(benchmark::State& state, SamplingParams params, std::vector<float> logits) {
  Result<Sampler> sampler = Sampler::create(std::move(params), kVocabSize, 1);
  TANDEM_CHECK(sampler.ok());
  for (auto _ : state) {
    Result<Choice> choice = sampler->choose(logits, false);
    TANDEM_CHECK(choice.ok());
    benchmark::DoNotOptimize(choice->token);
    TANDEM_CHECK(sampler->accept(choice->token).ok());
  }
}

#define TANDEM_CHOICE_BENCH(name, ...) \
  BENCHMARK_CAPTURE(choose, name, SamplingParams{__VA_ARGS__}, model_like_logits())

TANDEM_CHOICE_BENCH(greedy, .temperature = 0.0f);
TANDEM_CHOICE_BENCH(min_p_default, .min_p = 0.05f);
TANDEM_CHOICE_BENCH(unfiltered, .min_p = 0.0f);
TANDEM_CHOICE_BENCH(top_p_0_95, .top_p = 0.95f, .min_p = 0.0f);
TANDEM_CHOICE_BENCH(top_k_40, .min_p = 0.0f, .top_k = 40);
TANDEM_CHOICE_BENCH(top_k_1024_top_p, .top_p = 0.9f, .min_p = 0.0f, .top_k = 1024);
TANDEM_CHOICE_BENCH(penalties, .presence_penalty = 0.5f, .repetition_penalty = 1.1f);
TANDEM_CHOICE_BENCH(logprobs_20, .logprobs = true, .num_logprobs = 20);
BENCHMARK_CAPTURE(
    choose, top_p_0_95_hot, SamplingParams{.temperature = 3.0f, .top_p = 0.95f, .min_p = 0.0f},
    model_like_logits());
BENCHMARK_CAPTURE(
    choose, top_p_0_95_flat, SamplingParams{.top_p = 0.95f, .min_p = 0.0f},
    std::vector<float>(kVocabSize, 1.0f));

}  // namespace
}  // namespace tandem
