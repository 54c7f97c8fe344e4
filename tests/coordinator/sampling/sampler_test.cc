#include "coordinator/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The first two numbers of the generator for seed 1 are 0.28084 and 0.67114 of its range; see
// RngTest for the integers behind them.
constexpr uint64_t kSeed = 1;

Sampler sampler(SamplingParams params, int64_t vocab_size) {
  return std::move(Sampler::create(std::move(params), vocab_size, kSeed).value());
}

/// Logits whose weights at temperature 1 are proportional to `weights`.
std::vector<float> log_of(const std::vector<double>& weights) {
  std::vector<float> logits;
  for (const double weight : weights) logits.push_back(static_cast<float>(std::log(weight)));
  return logits;
}

int32_t pick(Sampler* s, const std::vector<float>& logits, bool greedy = false) {
  const Result<Choice> choice = s->choose(logits, greedy);
  EXPECT_OK(choice);
  return choice.ok() ? choice->token : -1;
}

/// Excludes all tokens but those listed.
class OnlyThese : public TokenConstraint {
 public:
  explicit OnlyThese(std::vector<int32_t> allowed) : allowed_(std::move(allowed)) {}
  void mask(std::span<float> logits) override {
    std::vector<float> masked(logits.size(), -kInf);
    for (const int32_t id : allowed_)
      masked[static_cast<size_t>(id)] = logits[static_cast<size_t>(id)];
    std::copy(masked.begin(), masked.end(), logits.begin());
  }
  void accept(int32_t) override {}
  bool complete() const override { return false; }

 private:
  std::vector<int32_t> allowed_;
};

TEST(SamplerTest, TakesTheLargestLogitAtTemperatureZero) {
  Sampler s = sampler({.temperature = 0.0f}, 4);
  EXPECT_EQ(pick(&s, {1.0f, 3.0f, 3.0f, 2.0f}), 1) << "lowest id on ties";
  EXPECT_EQ(pick(&s, {-kInf, -kInf, -5.0f, -kInf}), 2);
}

TEST(SamplerTest, WalksAscendingIdsWithoutRankFilters) {
  // Weights 0.5, 1, 0.5: r is 0.562 and then 1.342 of 2, both inside the second token.
  for (const float min_p : {0.0f, 0.05f}) {
    Sampler s = sampler({.min_p = min_p}, 3);
    EXPECT_EQ(pick(&s, log_of({1, 2, 1})), 1);
    EXPECT_EQ(pick(&s, log_of({1, 2, 1})), 1);
  }
}

TEST(SamplerTest, WalksDescendingRankWithRankFilters) {
  // The walk is token 1, 0, 2: r 0.562 ends in token 1, r 1.342 in token 0.
  const SamplingParams cases[] = {{.min_p = 0.0f, .top_k = 3}, {.top_p = 0.99f, .min_p = 0.0f}};
  for (const SamplingParams& params : cases) {
    Sampler s = sampler(params, 3);
    EXPECT_EQ(pick(&s, log_of({1, 2, 1})), 1);
    EXPECT_EQ(pick(&s, log_of({1, 2, 1})), 0);
  }
}

TEST(SamplerTest, DividesByTheTemperature) {
  // Weights 1 and 9 at temperature 1; at temperature 2 they are 1 and 3: r is 0.281 of 4 = 1.123.
  Sampler warm = sampler({.temperature = 2.0f, .min_p = 0.0f}, 2);
  EXPECT_EQ(pick(&warm, log_of({9, 1})), 0);
  EXPECT_EQ(pick(&warm, log_of({9, 1})), 0);  // r = 2.685, still below 3
  // At temperature 1 with token 0 the small one: r = 2.81 is past it; at 1000, r = 0.56 is not.
  Sampler plain = sampler({.temperature = 1.0f, .min_p = 0.0f}, 2);
  EXPECT_EQ(pick(&plain, log_of({1, 9})), 1);
  Sampler flat = sampler({.temperature = 100.0f, .min_p = 0.0f}, 2);
  EXPECT_EQ(pick(&flat, log_of({1, 9})), 0);
}

TEST(SamplerTest, DropsWhatIsBelowMinP) {
  // Weights 0.8, 1, 1: r = 0.281 * 2.8 = 0.786 ends in token 0; without it r = 0.562 in token 1.
  Sampler loose = sampler({.min_p = 0.7f}, 3);
  EXPECT_EQ(pick(&loose, log_of({0.8, 1, 1})), 0);
  Sampler tight = sampler({.min_p = 0.9f}, 3);
  EXPECT_EQ(pick(&tight, log_of({0.8, 1, 1})), 1);
  // The largest is kept at the end of the range, and so is its equal.
  Sampler strict = sampler({.min_p = 1.0f}, 3);
  EXPECT_EQ(pick(&strict, log_of({0.9, 1, 1})), 1);
  EXPECT_EQ(pick(&strict, log_of({0.9, 1, 1})), 2);
}

TEST(SamplerTest, KeepsTheTokenThatReachesTopP) {
  // Shares 0.5, 0.3, 0.2. top_p 0.5 keeps the first alone, 0.6 the first two.
  const std::vector<float> logits = log_of({2, 3, 5});
  Sampler one = sampler({.top_p = 0.4999f, .min_p = 0.0f}, 3);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(pick(&one, logits), 2);
  Sampler two = sampler({.top_p = 0.6f, .min_p = 0.0f}, 3);
  bool seen[3] = {};
  for (int i = 0; i < 50; ++i) seen[pick(&two, logits)] = true;
  EXPECT_FALSE(seen[0]);
  EXPECT_TRUE(seen[1]);
  EXPECT_TRUE(seen[2]);
  Sampler none = sampler({.top_p = 0.0f, .min_p = 0.0f}, 3);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(pick(&none, logits), 2);
}

TEST(SamplerTest, KeepsTopKWithLowestIdsOnTies) {
  Sampler s = sampler({.min_p = 0.0f, .top_k = 2}, 4);
  for (int i = 0; i < 50; ++i) ASSERT_LT(pick(&s, {1.0f, 1.0f, 1.0f, 1.0f}), 2);
}

TEST(SamplerTest, NeverDrawsAnExcludedToken) {
  const SamplingParams cases[] = {
      {.min_p = 0.0f},
      {.min_p = 1e-30f},
      {.top_p = 0.999f, .min_p = 0.0f},
      {.min_p = 0.0f, .top_k = 3},
      {.temperature = 100.0f, .min_p = 0.0f}};
  for (const SamplingParams& params : cases) {
    Sampler s = sampler(params, 4);
    for (int i = 0; i < 200; ++i) {
      const int32_t token = pick(&s, {-kInf, -1.0f, -kInf, -1.0f});
      ASSERT_TRUE(token == 1 || token == 3) << token;
    }
  }
}

TEST(SamplerTest, StructureTakesTheLargestAndNoRandomNumber) {
  const std::vector<float> logits = log_of({1, 2, 1});
  Sampler plain = sampler({.top_p = 0.99f, .min_p = 0.0f}, 3);
  Sampler mixed = sampler({.top_p = 0.99f, .min_p = 0.0f}, 3);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(pick(&mixed, logits, /*greedy=*/true), 1);
    ASSERT_EQ(pick(&mixed, logits), pick(&plain, logits));
  }
}

TEST(SamplerTest, StructureIgnoresPenaltiesAndKeepsBias) {
  Sampler s = sampler({.temperature = 0.0f, .frequency_penalty = 2.0f}, 3);
  EXPECT_OK(s.accept(1));
  EXPECT_EQ(pick(&s, {0.0f, 1.0f, 0.0f}), 0);
  EXPECT_EQ(pick(&s, {0.0f, 1.0f, 0.0f}, /*greedy=*/true), 1);
  Sampler biased = sampler({.logit_bias = {{2, 50.0f}}}, 3);
  EXPECT_EQ(pick(&biased, {0.0f, 1.0f, 0.0f}, /*greedy=*/true), 2);
}

TEST(SamplerTest, SubtractsPresenceOnceAndFrequencyPerOccurrence) {
  Sampler presence = sampler({.temperature = 0.0f, .presence_penalty = 1.0f}, 2);
  for (int i = 0; i < 5; ++i) EXPECT_OK(presence.accept(0));
  EXPECT_EQ(pick(&presence, {1.1f, 0.0f}), 0);
  EXPECT_EQ(pick(&presence, {0.9f, 0.0f}), 1);
  Sampler frequency = sampler({.temperature = 0.0f, .frequency_penalty = 1.0f}, 2);
  for (int i = 0; i < 3; ++i) EXPECT_OK(frequency.accept(0));
  EXPECT_EQ(pick(&frequency, {3.1f, 0.0f}), 0);
  EXPECT_EQ(pick(&frequency, {2.9f, 0.0f}), 1);
}

TEST(SamplerTest, CountsThePromptForTheRepetitionPenaltyOnly) {
  const std::vector<int32_t> prompt = {0, 0};
  Sampler s = sampler(
      {.temperature = 0.0f,
       .presence_penalty = 2.0f,
       .frequency_penalty = 2.0f,
       .repetition_penalty = 2.0f},
      2);
  EXPECT_OK(s.add_prompt(prompt));
  EXPECT_EQ(pick(&s, {2.1f, 1.0f}), 0);  // 1.05
  EXPECT_EQ(pick(&s, {1.9f, 1.0f}), 1);  // 0.95
  EXPECT_EQ(pick(&s, {-1.0f, -1.9f}), 1) << "a negative logit is multiplied: -2";
  EXPECT_EQ(pick(&s, {-1.0f, -2.1f}), 0);
  EXPECT_OK(s.accept(0));  // now 6 / 2 - 2 - 2 = -1
  EXPECT_EQ(pick(&s, {6.0f, -0.9f}), 1);
  EXPECT_EQ(pick(&s, {6.0f, -1.1f}), 0);
}

TEST(SamplerTest, AddsLogitBiasAfterPenaltiesAndBeforeTheConstraint) {
  Sampler s = sampler(
      {.temperature = 0.0f, .repetition_penalty = 2.0f, .logit_bias = {{0, 1.0f}, {2, 100.0f}}}, 3);
  EXPECT_OK(s.accept(0));
  OnlyThese constraint({0, 1});
  const auto choose = [&](std::vector<float> logits) {
    return s.choose(logits, false, &constraint)->token;
  };
  EXPECT_EQ(choose({2.0f, 1.9f, 0.0f}), 0) << "2 / 2 + 1, not (2 + 1) / 2";
  EXPECT_EQ(choose({2.0f, 2.1f, 0.0f}), 1);
}

TEST(SamplerTest, ReportsAnImpossibleConstraint) {
  Sampler s = sampler({}, 3);
  OnlyThese nothing({});
  EXPECT_ERROR(
      s.choose(std::vector<float>{1.0f, 2.0f, 3.0f}, false, &nothing), StatusCode::kInternal,
      "leave no finite logit");
}

TEST(SamplerTest, ReportsLogProbabilitiesOfTheModelsDistribution) {
  // Bias, temperature and filters move the choice but not the figures.
  Sampler s = sampler(
      {.temperature = 0.0f, .logit_bias = {{0, 100.0f}}, .logprobs = true, .num_logprobs = 3}, 5);
  std::vector<float> logits = log_of({1, 5, 2, 2});
  logits.push_back(-kInf);
  const Result<Choice> choice = s.choose(logits, false);
  ASSERT_OK(choice);
  EXPECT_EQ(choice->token, 0);
  // One rounding of each logit and one of the result, all below 4 in size.
  EXPECT_NEAR(choice->logprob.value(), std::log(0.1), 4 * 0x1p-23);
  ASSERT_EQ(choice->top.size(), 3u);
  EXPECT_EQ(choice->top[0].token, 1);
  EXPECT_NEAR(choice->top[0].logprob, std::log(0.5), 4 * 0x1p-23);
  EXPECT_EQ(choice->top[1].token, 2);
  EXPECT_EQ(choice->top[2].token, 3);
  EXPECT_NEAR(choice->top[2].logprob, std::log(0.2), 4 * 0x1p-23);
}

TEST(SamplerTest, LeavesLogProbabilitiesOutUnlessAsked) {
  Sampler s = sampler({}, 2);
  const Result<Choice> choice = s.choose(std::vector<float>{1.0f, 2.0f}, false);
  ASSERT_OK(choice);
  EXPECT_FALSE(choice->logprob.has_value());
  EXPECT_TRUE(choice->top.empty());
  Sampler chosen_only = sampler({.logprobs = true}, 2);
  const Result<Choice> with = chosen_only.choose(std::vector<float>{0.0f, 0.0f}, false);
  ASSERT_OK(with);
  EXPECT_NEAR(with->logprob.value(), std::log(0.5), 0x1p-23);
  EXPECT_TRUE(with->top.empty());
}

TEST(SamplerTest, ReportsBrokenLogitsAndGoesOn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const SamplingParams cases[] = {
      {.temperature = 0.0f}, {}, {.min_p = 0.0f}, {.top_p = 0.9f}, {.top_k = 2}};
  for (const SamplingParams& params : cases) {
    Sampler s = sampler(params, 3);
    const std::vector<float> bad[] = {
        {1.0f, nan, 2.0f}, {nan, nan, nan}, {1.0f, kInf, 0.0f}, {-kInf, -kInf, -kInf}};
    for (const std::vector<float>& logits : bad) {
      EXPECT_ERROR(s.choose(logits, false), StatusCode::kDataLoss, "NaN or plus infinity");
    }
    EXPECT_EQ(pick(&s, {-kInf, 0.0f, -kInf}), 1);
  }
}

TEST(SamplerTest, RefusesWrongLengthsAndForeignTokens) {
  Sampler s = sampler({}, 3);
  EXPECT_ERROR(
      s.choose(std::vector<float>(4, 0.0f), false), StatusCode::kInvalidArgument,
      "got 4 logits for a vocabulary of 3");
  EXPECT_ERROR(s.accept(3), StatusCode::kInvalidArgument, "token 3 is outside");
  EXPECT_ERROR(s.accept(-1), StatusCode::kInvalidArgument, "token -1 is outside");
  const std::vector<int32_t> prompt = {0, 9};
  EXPECT_ERROR(s.add_prompt(prompt), StatusCode::kInvalidArgument, "prompt token 9");
  EXPECT_ERROR(Sampler::create({.top_p = 2.0f}, 3, 0), StatusCode::kInvalidArgument, "top_p is 2");
}

TEST(SamplerTest, SeedDecidesTheDraws) {
  const std::vector<float> logits(50, 0.0f);
  const auto draws = [&](std::optional<uint64_t> seed, uint64_t fallback) {
    SamplingParams params;
    params.seed = seed;
    Sampler s = std::move(Sampler::create(params, 50, fallback).value());
    std::vector<int32_t> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back(pick(&s, logits));
    return tokens;
  };
  EXPECT_EQ(draws(7, 1), draws(7, 2));
  EXPECT_EQ(draws(std::nullopt, 7), draws(7, 2));
  EXPECT_NE(draws(7, 1), draws(8, 1));
}

TEST(SamplerTest, DrawsInProportion) {
  // Pearson's statistic against the exact shares; 27.88 is the 0.999 quantile of chi-square with 9
  // degrees of freedom, and the seed is fixed.
  const std::vector<double> weights = {1, 2, 3, 4, 5, 5, 4, 3, 2, 1};
  const std::vector<float> logits = log_of(weights);
  const SamplingParams cases[] = {
      {.min_p = 0.0f},
      {.min_p = 0.05f},
      {.top_p = 0.9999f, .min_p = 0.0f},
      {.min_p = 0.0f, .top_k = 10}};
  for (const SamplingParams& params : cases) {
    SCOPED_TRACE(::testing::Message() << "top_p=" << params.top_p << " top_k=" << params.top_k);
    Sampler s = sampler(params, 10);
    constexpr int kDraws = 30000;
    std::vector<int> counts(10);
    for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(pick(&s, logits))];
    double statistic = 0.0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const double expected = kDraws * weights[i] / 30.0;
      statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(statistic, 27.88);
  }
}

}  // namespace
}  // namespace tandem
