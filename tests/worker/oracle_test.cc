#include "tests/support/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "tests/support/environment.h"
#include "tests/support/paths.h"
#include "tests/support/stages.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

constexpr int64_t kChunk = 512;

LocalStageOptions options_of(Numerics numerics) {
  LocalStageOptions options;
  options.numerics = numerics;
  options.context_tokens = 4096;
  options.max_rows = kChunk;
  return options;
}

int32_t argmax(const float* logits, int64_t vocab) {
  return static_cast<int32_t>(std::max_element(logits, logits + vocab) - logits);
}

std::vector<double> log_softmax(const float* logits, int64_t vocab) {
  const double top = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(logits[i] - top);
  std::vector<double> out(static_cast<size_t>(vocab));
  for (int64_t i = 0; i < vocab; ++i) out[static_cast<size_t>(i)] = logits[i] - top - std::log(sum);
  return out;
}

/// The worst differences of one prompt.
struct Worst {
  double log_probability = 0;
  double last_logit = 0;
  int64_t argmax_misses = 0;
};

Worst compare(const OraclePrompt& prompt, const Tensor& logits) {
  Worst out;
  for (const auto& [position, candidates] : prompt.positions) {
    const std::vector<double> actual = log_softmax(logits.row(position), logits.cols);
    for (const auto& candidate : candidates) {
      const double difference =
          std::fabs(actual[static_cast<size_t>(candidate.token)] - candidate.log_probability);
      out.log_probability = std::max(out.log_probability, difference);
    }
  }
  for (int64_t i = 0; i < logits.cols; ++i) {
    const double difference = std::fabs(
        static_cast<double>(logits.at(logits.rows - 1, i)) -
        static_cast<double>(prompt.last_logits[static_cast<size_t>(i)]));
    out.last_logit = std::max(out.last_logit, difference);
  }
  for (int64_t t = 0; t < logits.rows; ++t) {
    out.argmax_misses +=
        argmax(logits.row(t), logits.cols) != prompt.argmax[static_cast<size_t>(t)] ? 1 : 0;
  }
  return out;
}

/// Continues bank 0 greedily, as long as the oracle does.
std::vector<int32_t> continue_greedily(Stages& stages, const Tensor& logits, size_t num_tokens) {
  std::vector<int32_t> out = {argmax(logits.row(logits.rows - 1), logits.cols)};
  while (out.size() < num_tokens) {
    const Tensor next = stages.step({{0, {out.back()}}});
    out.push_back(argmax(next.row(0), next.cols));
  }
  return out;
}

/// How the fast path follows the exact one over all positions of all prompts.
struct FastAgreement {
  double kl_sum = 0;
  int64_t same_argmax = 0;
  int64_t positions = 0;

  void add(const Tensor& exact, const Tensor& fast) {
    for (int64_t t = 0; t < exact.rows; ++t) {
      const std::vector<double> p = log_softmax(exact.row(t), exact.cols);
      const std::vector<double> q = log_softmax(fast.row(t), fast.cols);
      for (size_t i = 0; i < p.size(); ++i) kl_sum += std::exp(p[i]) * (p[i] - q[i]);
      same_argmax += argmax(exact.row(t), exact.cols) == argmax(fast.row(t), fast.cols) ? 1 : 0;
      ++positions;
    }
  }
};

void expect_exact_matches_oracle(const OpenModel& opened, const std::string& kind) {
  Stages exact(opened, {}, options_of(Numerics::kExact));
  std::printf(
      "%-14s %9s %12s %12s %8s %8s\n", "prompt", "positions", "worst logp", "worst logit", "argmax",
      "greedy");
  for (const OraclePrompt& prompt : load_oracle(kind)) {
    SCOPED_TRACE(prompt.name);
    ASSERT_OK(exact.stage(0).reset(0));
    const Tensor logits = exact.feed(0, prompt.ids, kChunk);
    const Worst worst = compare(prompt, logits);
    const std::vector<int32_t> greedy = continue_greedily(exact, logits, prompt.greedy.size());
    std::printf(
        "%-14s %9zu %12.2e %12.2e %8lld %8s\n", prompt.name.c_str(), prompt.ids.size(),
        worst.log_probability, worst.last_logit,
        static_cast<long long>(logits.rows - worst.argmax_misses),
        greedy == prompt.greedy ? "same" : "differs");
    EXPECT_LE(worst.log_probability, 2e-3);
    EXPECT_LE(worst.last_logit, 5e-3);
    EXPECT_EQ(worst.argmax_misses, 0);
    EXPECT_EQ(greedy, prompt.greedy);
  }
}

TEST(OracleTest, TheQ4KModelMatchesEveryPrompt) {
  expect_exact_matches_oracle(open_nano(), "q4_k");
}

TEST(OracleTest, TheFastPathFollowsTheExactOne) {
  const OpenModel nano = open_nano();
  Stages exact(nano, {}, options_of(Numerics::kExact));
  Stages fast(nano, {}, options_of(Numerics::kFast));
  FastAgreement agreement;
  for (const OraclePrompt& prompt : load_oracle("q4_k")) {
    ASSERT_OK(exact.stage(0).reset(0));
    ASSERT_OK(fast.stage(0).reset(0));
    agreement.add(exact.feed(0, prompt.ids, kChunk), fast.feed(0, prompt.ids, kChunk));
  }
  const auto positions = static_cast<double>(agreement.positions);
  const double same = static_cast<double>(agreement.same_argmax) / positions;
  const double kl = agreement.kl_sum / positions;
  std::printf("fast path: same argmax at %.2f %%, mean KL %.2e\n", 100 * same, kl);
  EXPECT_GE(same, 0.98);
  EXPECT_LE(kl, 5e-3);
}

TEST(OracleTest, TheF16ModelMatchesEveryPrompt) {
  const std::string path = nano_f16_path().value_or(repo_path("../shared/nano/nano-f16.gguf"));
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << "no F16 nano model at " << path << "; TANDEM_TEST_NANO_F16 names it";
  }
  expect_exact_matches_oracle(open_test_model(path), "f16");
}

}  // namespace
}  // namespace tandem::test
