#include "coordinator/sampling/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace tandem {
namespace {

/// Few distinct values, so that ties are everywhere.
std::vector<float> tied_logits(size_t size, uint64_t seed, uint64_t num_values) {
  Rng rng(seed);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = static_cast<float>(rng.next() % num_values) - 3.0f;
  return logits;
}

std::vector<Candidate> sorted(const std::vector<float>& logits) {
  std::vector<Candidate> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    all.push_back({logits[i], 1.0f, static_cast<int32_t>(i)});
  }
  std::sort(all.begin(), all.end(), ranks_before);
  return all;
}

TEST(SelectTopTest, MatchesAFullSort) {
  for (const size_t size : {1u, 10u, 3000u, 9000u}) {
    for (const size_t k : {1u, 5u, 1024u}) {
      for (const uint64_t num_values : {1u, 3u, 100000u}) {
        const std::vector<float> logits = tied_logits(size, size + k, num_values);
        std::vector<Candidate> top;
        select_top(logits, k, &top);
        const std::vector<Candidate> expected = sorted(logits);
        ASSERT_EQ(top.size(), std::min(k, size));
        for (size_t i = 0; i < top.size(); ++i) ASSERT_EQ(top[i].id, expected[i].id) << i;
      }
    }
  }
}

TEST(SelectTopTest, LeavesOutMinusInfinityAndStaysInItsRoom) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<Candidate> top;
  select_top(std::vector<float>{-inf, 1.0f, -inf, 2.0f}, 3, &top);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].id, 3);
  EXPECT_EQ(top[1].id, 1);

  std::vector<float> rising(5000);
  for (size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<float>(i);
  top.reserve(select_top_room(4));
  const size_t capacity = top.capacity();
  select_top(rising, 4, &top);
  EXPECT_EQ(top[0].id, 4999);
  EXPECT_EQ(top.capacity(), capacity);
}

TEST(RankPrefixTest, EndsWithTheMemberThatReachesTheTarget) {
  std::vector<Candidate> some = {{1.0f, 2.0f, 7}, {3.0f, 4.0f, 9}, {1.0f, 2.0f, 5}};
  EXPECT_EQ(rank_prefix(some, 0.0), 1u);
  EXPECT_EQ(some[0].id, 9);
  EXPECT_EQ(rank_prefix(some, 4.0), 1u);
  EXPECT_EQ(rank_prefix(some, 4.5), 2u);
  EXPECT_EQ(some[1].id, 5);
  EXPECT_EQ(rank_prefix(some, 8.0), 3u);
  EXPECT_EQ(rank_prefix(some, 100.0), 3u);
}

TEST(RankPrefixTest, MatchesASortedWalk) {
  for (const uint64_t num_values : {1u, 7u, 100000u}) {
    const std::vector<Candidate> expected = sorted(tied_logits(3000, 11, num_values));
    for (const double target : {1.0, 2.5, 33.0, 1500.0, 2999.5, 4000.0}) {
      std::vector<Candidate> candidates = expected;
      std::reverse(candidates.begin(), candidates.end());
      const size_t length = rank_prefix(candidates, target);
      ASSERT_EQ(length, static_cast<size_t>(std::min(3000.0, std::ceil(target))));
      EXPECT_EQ(candidates[length - 1].id, expected[length - 1].id);
      std::sort(
          candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(length), ranks_before);
      for (size_t i = 0; i < length; ++i) ASSERT_EQ(candidates[i].id, expected[i].id);
    }
  }
}

}  // namespace
}  // namespace tandem
