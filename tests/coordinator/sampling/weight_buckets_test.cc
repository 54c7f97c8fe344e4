#include "coordinator/sampling/weight_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace tandem {
namespace {

TEST(WeightBucketsTest, FindsPlacesInASmallWalk) {
  // By rank: id 1 (1), id 3 (0.5), id 0 (0.25), id 4 (0.25); id 2 has no weight.
  const std::vector<float> weights = {0.25f, 1.0f, 0.0f, 0.5f, 0.25f};
  std::vector<float> logits;
  for (const float weight : weights) logits.push_back(std::log(weight));
  WeightBuckets buckets;
  buckets.fill(weights);
  std::vector<Candidate> scratch;
  const auto find = [&](double target) { return buckets.find(logits, weights, target, &scratch); };
  EXPECT_EQ(find(0.0).id, 1);
  EXPECT_EQ(find(1.0).id, 1);
  EXPECT_EQ(find(1.0).sum_to, 1.0);
  EXPECT_EQ(find(1.01).id, 3);
  EXPECT_EQ(find(1.6).id, 0);
  EXPECT_EQ(find(1.6).sum_to, 1.75);
  EXPECT_EQ(find(2.0).id, 4);
  EXPECT_EQ(find(5.0).id, 4);
  EXPECT_EQ(find(5.0).sum_to, 2.0);
}

TEST(WeightBucketsTest, MatchesAFullSort) {
  Rng rng(21);
  std::vector<Candidate> all;
  std::vector<float> logits;
  std::vector<float> weights;
  for (int32_t id = 0; id < 5000; ++id) {
    // Down to the smallest weights, with every third one a tie.
    const float logit = id % 3 == 0 ? -2.0f : -87.0f * rng.uniform() * rng.uniform();
    logits.push_back(logit);
    weights.push_back(std::exp(logit));
    all.push_back({logit, weights.back(), id});
  }
  std::sort(all.begin(), all.end(), ranks_before);
  WeightBuckets buckets;
  buckets.fill(weights);
  std::vector<Candidate> scratch;
  double sum = 0.0;
  for (const Candidate& candidate : all) {
    const double inside = sum + 0.5 * static_cast<double>(candidate.weight);
    sum += static_cast<double>(candidate.weight);
    // What rounds away against the sum is no place of its own.
    if (static_cast<double>(candidate.weight) < 1e-9 * sum) break;
    const WeightBuckets::Place place = buckets.find(logits, weights, inside, &scratch);
    ASSERT_EQ(place.id, candidate.id);
    ASSERT_NEAR(place.sum_to, sum, sum * 5000 * 0x1p-53);
  }
}

}  // namespace
}  // namespace tandem
