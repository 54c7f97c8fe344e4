// Counts operator new around the work of one token.

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "coordinator/sampling/sampler.h"
#include "coordinator/sampling/stop_matcher.h"
#include "tests/support/count_allocations.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

constexpr int64_t kVocabSize = 4096;

class AllowEvenTokens : public TokenConstraint {
 public:
  void mask(std::span<float> logits) override {
    for (size_t i = 1; i < logits.size(); i += 2) {
      logits[i] = -std::numeric_limits<float>::infinity();
    }
  }
  void accept(int32_t) override {}
  bool complete() const override { return false; }
};

TEST(SamplingAllocationTest, CountsAllocations) {
  const int64_t before = test::num_allocations();
  ::operator delete(::operator new(1));  // a new expression may be optimised away
  EXPECT_GT(test::num_allocations(), before);
}

TEST(SamplingAllocationTest, AllocatesNothingPerToken) {
  const SamplingParams cases[] = {
      {.temperature = 0.0f},
      {.min_p = 0.0f},
      {.min_p = 0.05f},
      {.top_p = 0.9f, .min_p = 0.0f},
      {.min_p = 0.0f, .top_k = 40},
      {.logprobs = true},
      {.presence_penalty = 1.0f, .repetition_penalty = 1.1f, .logit_bias = {{1, 2.0f}}}};
  for (const SamplingParams& params : cases) {
    SCOPED_TRACE(
        ::testing::Message() << "T=" << params.temperature << " top_p=" << params.top_p
                             << " min_p=" << params.min_p << " top_k=" << params.top_k);
    Rng rng(9);
    std::vector<float> logits(kVocabSize);
    for (float& logit : logits) logit = 12.0f * rng.uniform();
    AllowEvenTokens constraint;
    auto created = Sampler::create(params, kVocabSize, 1);
    ASSERT_OK(created);
    Sampler& s = created.value();
    int64_t in_loop = 0;
    for (int i = 0; i < 50; ++i) {
      logits[static_cast<size_t>(rng.next() % kVocabSize)] = 12.0f;
      const int64_t before = test::num_allocations();
      const Result<Choice> plain = s.choose(logits, false);
      const Result<Choice> structure = s.choose(logits, true);
      const Result<Choice> constrained = s.choose(logits, false, &constraint);
      const bool good =
          plain.ok() && structure.ok() && constrained.ok() && s.accept(plain->token).ok();
      // The first round may size the buffer that only a constraint needs.
      if (i > 0) in_loop += test::num_allocations() - before;
      ASSERT_TRUE(good);
    }
    EXPECT_EQ(in_loop, 0);
  }
}

TEST(SamplingAllocationTest, StopMatcherAllocatesNothingPerPush) {
  auto created = StopMatcher::create({"STOP", "stop it", "\n\nUser"});
  ASSERT_OK(created);
  int64_t shown_bytes = 0;
  const int64_t before = test::num_allocations();
  for (int i = 0; i < 1000; ++i) {
    shown_bytes += static_cast<int64_t>(created->push(" a st").size());
    shown_bytes += static_cast<int64_t>(created->push("op sign\n\n").size());
  }
  EXPECT_EQ(test::num_allocations(), before);
  EXPECT_EQ(shown_bytes, 14 * 1000 - 2);
}

}  // namespace
}  // namespace tandem
