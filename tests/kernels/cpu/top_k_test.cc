#include "kernels/index_select/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace tandem {
namespace {

std::vector<int32_t> select(const std::vector<float>& scores, int64_t k) {
  std::vector<uint32_t> keys(2 * scores.size());
  std::vector<int32_t> out(static_cast<size_t>(k), -7);
  select_top_k(scores.data(), static_cast<int64_t>(scores.size()), k, keys.data(), out.data());
  return out;
}

std::vector<int32_t> select_by_sorting(const std::vector<float>& scores, int64_t k) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(k));
  std::sort(order.begin(), order.end());
  return order;
}

TEST(TopKTest, EqualsSortingForRandomScores) {
  Rng rng(3);
  for (const int64_t count : {1, 2, 63, 500, 5000}) {
    std::vector<float> scores(static_cast<size_t>(count));
    for (float& s : scores) s = std::ldexp(rng.uniform() - 0.5f, int(rng.next() % 40) - 20);
    for (const int64_t k : {int64_t{1}, (count + 1) / 2, count}) {
      EXPECT_EQ(select(scores, k), select_by_sorting(scores, k)) << count << " " << k;
    }
  }
}

TEST(TopKTest, TakesTheLowerIndexOfEqualScores) {
  Rng rng(4);
  std::vector<float> scores(300);
  for (float& s : scores) s = static_cast<float>(rng.next() % 4);
  for (const int64_t k : {1, 50, 100, 299})
    EXPECT_EQ(select(scores, k), select_by_sorting(scores, k));
  EXPECT_EQ(select({0.0f, -0.0f, 0.0f, -0.0f}, 2), (std::vector<int32_t>{0, 1}));
}

TEST(TopKTest, OrdersInfinitiesAndLeavesNanToTheLast) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(select({nan, -inf, 1.0f, inf, -1.0f}, 2), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(select({nan, -inf, nan}, 1), (std::vector<int32_t>{1}));
}

}  // namespace
}  // namespace tandem
