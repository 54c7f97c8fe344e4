#include "base/random.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

// Values from the definition, worked with arbitrary-precision integers.
TEST(RngTest, FollowsXorshift64Star) {
  Rng rng(1);
  EXPECT_EQ(rng.next(), 5180492295206395165ULL);
  EXPECT_EQ(rng.next(), 12380297144915551517ULL);
}

TEST(RngTest, ReplacesZeroSeed) {
  EXPECT_EQ(Rng(0).state(), 0x9E3779B97F4A7C15ULL);
}

TEST(RngTest, KeepsUniformBelowOne) {
  Rng rng(7);
  for (int i = 0; i < 10000; ++i) {
    const float value = rng.uniform();
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
  }
}

}  // namespace
}  // namespace tandem
