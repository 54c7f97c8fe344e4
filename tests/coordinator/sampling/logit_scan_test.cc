#include "coordinator/sampling/logit_scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace tandem {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(LogitScanTest, FindsLowestIdOfTheLargestAtEveryLength) {
  for (const size_t size : {1u, 15u, 16u, 255u, 256u, 257u, 600u}) {
    for (size_t place = 0; place < size; ++place) {
      std::vector<float> logits(size, -2.0f);
      for (size_t i = place; i < size; i += 7) logits[i] = 3.0f;
      const LogitPeak peak = find_peak(logits);
      ASSERT_EQ(peak.id, static_cast<int32_t>(place)) << "size=" << size;
      ASSERT_EQ(peak.logit, 3.0f);
    }
  }
}

TEST(LogitScanTest, RefusesBrokenLogitsWhereverTheyAre) {
  for (const float broken : {std::numeric_limits<float>::quiet_NaN(), kInf}) {
    for (size_t place = 0; place < 520; ++place) {
      std::vector<float> logits(520, 1.0f);
      logits[place] = broken;
      ASSERT_EQ(find_peak(logits).id, -1) << "place=" << place;
    }
  }
  EXPECT_EQ(find_peak(std::vector<float>(70, -kInf)).id, -1);
  EXPECT_EQ(find_peak({}).id, -1);
}

TEST(LogitScanTest, ExponentialIsCloseOnItsWholeRange) {
  EXPECT_EQ(exp_weight(0.0f), 1.0f);
  EXPECT_EQ(exp_weight(-88.0f), 0.0f);
  EXPECT_EQ(exp_weight(-kInf), 0.0f);
  for (float x = -86.9f; x < 0.0f; x += 0.00137f) {
    const double expected = std::exp(static_cast<double>(x));
    // 4 units in the last place, as the contract says.
    ASSERT_NEAR(static_cast<double>(exp_weight(x)) / expected, 1.0, 4 * 0x1p-23) << "x=" << x;
  }
}

TEST(LogitScanTest, WeightsAndRunSumsMatchPlainLoops) {
  Rng rng(3);
  std::vector<float> logits(333);
  for (float& logit : logits) logit = 20.0f * rng.uniform() - 15.0f;
  logits[5] = -kInf;
  logits[100] = 6.0f;
  std::vector<float> weights(logits.size());
  std::vector<double> run_sums(2);
  const double total = exp_weights(logits, 6.0f, 0.7f, weights, run_sums);
  double expected_total = 0.0;
  for (size_t run_idx = 0; run_idx < run_sums.size(); ++run_idx) {
    double expected = 0.0;
    for (size_t i = run_idx * kScanRun; i < std::min<size_t>(333, (run_idx + 1) * kScanRun); ++i) {
      EXPECT_EQ(weights[i], exp_weight((logits[i] - 6.0f) / 0.7f)) << i;
      expected += static_cast<double>(weights[i]);
    }
    // At most 16 float additions in a lane.
    EXPECT_NEAR(run_sums[run_idx], expected, expected * 16 * 0x1p-24);
    expected_total += run_sums[run_idx];
  }
  EXPECT_EQ(total, expected_total);
}

TEST(LogitScanTest, VisitsAscendingAndFollowsARisingFloor) {
  std::vector<float> values(200, 0.0f);
  values[3] = 1.0f;
  values[70] = 2.0f;
  values[71] = 1.5f;
  values[199] = 2.0f;
  std::vector<int32_t> visited;
  float floor = 0.5f;
  for_each_at_least(values, floor, [&](int32_t i, float value) {
    visited.push_back(i);
    floor = value;
  });
  EXPECT_EQ(visited, (std::vector<int32_t>{3, 70, 199}));
}

}  // namespace
}  // namespace tandem
