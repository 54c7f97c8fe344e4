#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/math/reference_math.h"
#include "kernels/math/row_rounding.h"
#include "tests/support/naive_math.h"
#include "tests/support/near.h"
#include "tests/support/tensor.h"

namespace tandem::test {
namespace {

/// Each code, the tie between neighbours and the floats next to the tie.
template <class Round>
void check_every_code_and_tie(const std::vector<double>& codes, const Round& round) {
  for (const double sign : {1.0, -1.0}) {
    for (size_t code = 0; code < codes.size(); ++code) {
      const auto value = static_cast<float>(sign * codes[code]);
      EXPECT_EQ(round(value), value) << "code " << code;
      if (code + 1 == codes.size()) break;
      const double even = code % 2 == 0 ? codes[code] : codes[code + 1];
      const auto tie = static_cast<float>((codes[code] + codes[code + 1]) / 2);
      EXPECT_EQ(round(static_cast<float>(sign) * tie), static_cast<float>(sign * even))
          << "between codes " << code << " and " << code + 1;
      const auto below = static_cast<float>(sign) * std::nextafter(tie, 0.0f);
      const auto above = static_cast<float>(sign) * std::nextafter(tie, 1e9f);
      EXPECT_EQ(round(below), static_cast<float>(sign * codes[code]));
      EXPECT_EQ(round(above), static_cast<float>(sign * codes[code + 1]));
    }
  }
}

TEST(RowRoundingTest, E4m3RoundsToTheNearestCodeTiesToEven) {
  ASSERT_EQ(naive::e4m3_codes().size(), 127u);
  ASSERT_EQ(naive::e4m3_codes().back(), 448.0);
  ASSERT_EQ(naive::e4m3_codes()[1], 0x1p-9);
  check_every_code_and_tie(naive::e4m3_codes(), [](float x) { return round_e4m3(x); });
}

TEST(RowRoundingTest, E2m1RoundsToTheNearestCodeTiesToEven) {
  ASSERT_EQ(naive::e2m1_codes(), (std::vector<double>{0, 0.5, 1, 1.5, 2, 3, 4, 6}));
  check_every_code_and_tie(naive::e2m1_codes(), [](float x) { return round_e2m1(x); });
}

TEST(RowRoundingTest, RoundsSweptFloatsAsTheTableOfCodesDoes) {
  Normal normal(5);  // seed 5
  for (int i = 0; i < 20000; ++i) {
    const float scale = std::exp2(static_cast<float>(i % 24) - 14.0f);
    const float x = std::clamp(normal.next() * scale, -448.0f, 448.0f);
    EXPECT_EQ(round_e4m3(x), static_cast<float>(naive::round_to_codes(x, naive::e4m3_codes())))
        << x;
    const float y = std::clamp(x, -6.0f, 6.0f);
    EXPECT_EQ(round_e2m1(y), static_cast<float>(naive::round_to_codes(y, naive::e2m1_codes())))
        << y;
  }
}

TEST(RowRoundingTest, CeilLog2IsExactAtAndAfterPowersOfTwo) {
  for (int k = -126; k < 127; ++k) {
    const float power = std::ldexp(1.0f, k);
    EXPECT_EQ(ceil_log2(power), k);
    EXPECT_EQ(ceil_log2(std::nextafter(power, 1e38f)), k + 1);
    EXPECT_EQ(exp2_int(k), power);
  }
}

/// Scales from far below the floor of 1e-4 up to large values.
std::vector<float> scales() {
  return {1e-9f, 1e-5f, 0.01f, 1.0f, 37.0f, 1e6f};
}

TEST(RowRoundingTest, Fp8GroupsMatchTheTableAndAreIdempotent) {
  for (const float scale : scales()) {
    SCOPED_TRACE(::testing::Message() << "scale " << scale << " seed 7");
    Tensor x = random_tensor(40, 448, 7, scale);
    for (int64_t r = 0; r < x.rows; ++r) {
      std::vector<double> expected(x.row(r), x.row(r) + x.cols);
      naive::round_fp8(expected);
      reference::round_fp8_groups(x.row(r), x.cols);
      const std::vector<float> once(x.row(r), x.row(r) + x.cols);
      for (size_t i = 0; i < once.size(); ++i) {
        ASSERT_EQ(once[i], static_cast<float>(expected[i])) << "row " << r << " value " << i;
      }
      reference::round_fp8_groups(x.row(r), x.cols);
      EXPECT_EQ(std::memcmp(once.data(), x.row(r), once.size() * sizeof(float)), 0);
    }
  }
}

TEST(RowRoundingTest, Fp4GroupsMatchTheTableAndAreIdempotent) {
  for (const float scale : scales()) {
    SCOPED_TRACE(::testing::Message() << "scale " << scale << " seed 8");
    Tensor x = random_tensor(40, 128, 8, scale);
    for (int64_t r = 0; r < x.rows; ++r) {
      std::vector<double> expected(x.row(r), x.row(r) + x.cols);
      naive::round_fp4(expected);
      reference::round_fp4_groups(x.row(r), x.cols);
      const std::vector<float> once(x.row(r), x.row(r) + x.cols);
      for (size_t i = 0; i < once.size(); ++i) {
        ASSERT_EQ(once[i], static_cast<float>(expected[i])) << "row " << r << " value " << i;
      }
      reference::round_fp4_groups(x.row(r), x.cols);
      EXPECT_EQ(std::memcmp(once.data(), x.row(r), once.size() * sizeof(float)), 0);
    }
  }
}

TEST(RowRoundingTest, GroupsOfZerosStayZero) {
  std::vector<float> zeros(64, 0.0f);
  reference::round_fp8_groups(zeros.data(), 64);
  reference::round_fp4_groups(zeros.data(), 64);
  EXPECT_EQ(zeros, std::vector<float>(64, 0.0f));
}

TEST(RowRoundingTest, TheLargestValueOfAGroupOfPowersIsKept) {
  // 448 * 2^k takes scale 2^k exactly; a hair more takes 2^(k + 1).
  for (const int k : {-3, 0, 4}) {
    std::vector<float> x(64, 0.0f);
    x[5] = std::ldexp(448.0f, k);
    x[6] = std::ldexp(1.0f, k - 9);  // the smallest code at that scale
    reference::round_fp8_groups(x.data(), 64);
    EXPECT_EQ(x[5], std::ldexp(448.0f, k));
    EXPECT_EQ(x[6], std::ldexp(1.0f, k - 9));
    std::vector<float> y(32, 0.0f);
    y[0] = std::ldexp(-6.0f, k);
    y[1] = std::ldexp(0.5f, k);
    reference::round_fp4_groups(y.data(), 32);
    EXPECT_EQ(y[0], std::ldexp(-6.0f, k));
    EXPECT_EQ(y[1], std::ldexp(0.5f, k));
  }
}

TEST(ReferenceMathTest, DotMatchesFloat64AtEveryTailLength) {
  for (int64_t n = 0; n <= 40; ++n) {
    const Tensor a = random_tensor(1, n, 1);
    const Tensor b = random_tensor(1, n, 2);
    double exact = 0;
    double magnitude = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double product = static_cast<double>(a.at(0, i)) * static_cast<double>(b.at(0, i));
      exact += product;
      magnitude += std::fabs(product);
    }
    const double bound = static_cast<double>(n + 1) * 0x1p-24 * magnitude;
    EXPECT_NEAR(reference::dot(a.row(0), b.row(0), n), exact, bound) << "n=" << n;
  }
}

TEST(ReferenceMathTest, RmsNormScalesHandWorkedRow) {
  const std::vector<float> x = {3, 4};
  const std::vector<float> weight = {1, 2};
  std::vector<float> out(2);
  reference::rms_norm(x.data(), {weight.data(), 2}, 0.0f, out.data());
  EXPECT_NEAR(out[0], 0.848528137, 4e-7);  // 3 / sqrt(12.5)
  EXPECT_NEAR(out[1], 2.262741700, 4e-7);
}

TEST(ReferenceMathTest, HadamardIsTheSylvesterMatrix) {
  for (const int64_t n : {2, 32, 128}) {
    for (int64_t j = 0; j<n; j += n / 2 - 1> 0 ? n / 2 - 1 : 1) {  // a few unit vectors
      std::vector<float> x(static_cast<size_t>(n), 0.0f);
      x[static_cast<size_t>(j)] = 1.0f;
      std::vector<double> expected(x.begin(), x.end());
      naive::hadamard(expected);
      reference::hadamard(x.data(), n);
      for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(x[i], expected[i], 1e-7) << "n=" << n;
    }
    Tensor x = random_tensor(1, n, 3);
    Tensor64 expected = widen(x);
    naive::hadamard({expected.row(0), static_cast<size_t>(n)});
    reference::hadamard(x.row(0), n);
    // log2(n) additions of values of the size of the result times sqrt(n).
    EXPECT_TRUE(near_all(x, expected, 8 * std::sqrt(static_cast<double>(n)) * 0x1p-24 * 4));
  }
  std::vector<float> ones(128, 1.0f);
  reference::hadamard(ones.data(), 128);
  EXPECT_NEAR(ones[0], 128 * 0.08838834764831845, 1e-5);
}

TEST(ReferenceMathTest, RotationTurnsAdjacentPairsOfTheTail) {
  const std::vector<float> frequencies = {1.0f, 0.25f};
  std::vector<float> x = {7, 8, 1, 0, 0, 2};
  const RotaryView rotary{frequencies.data(), 4};
  reference::rotate_tail(x.data(), 6, rotary, 3, false);
  EXPECT_EQ(x[0], 7);
  EXPECT_EQ(x[1], 8);
  EXPECT_NEAR(x[2], std::cos(3.0), 1e-6);
  EXPECT_NEAR(x[3], std::sin(3.0), 1e-6);
  EXPECT_NEAR(x[4], -2 * std::sin(0.75), 1e-6);
  EXPECT_NEAR(x[5], 2 * std::cos(0.75), 1e-6);
  reference::rotate_tail(x.data(), 6, rotary, 3, true);
  EXPECT_NEAR(x[2], 1, 1e-6);
  EXPECT_NEAR(x[5], 2, 1e-6);
}

TEST(ReferenceMathTest, RotationStaysAccurateAtAMillionPositions) {
  const std::vector<float> frequencies = naive::plain_frequencies(10000, 64);
  for (const int64_t pos : {0, 1, 127, 128, 65536, 1048575}) {
    Tensor x = random_tensor(1, 64, 4);
    Tensor64 expected = widen(x);
    naive::rotate({expected.row(0), 64}, frequencies, pos, false);
    reference::rotate_tail(x.row(0), 64, {frequencies.data(), 64}, pos, false);
    EXPECT_TRUE(near_all(x, expected, 2e-6)) << "pos " << pos;
  }
}

TEST(ReferenceMathTest, SoftplusIsAccurateEverywhere) {
  for (const float z :
       {-100.0f, -30.0f, -20.001f, -20.0f, -19.9f, -1.0f, 0.0f, 1e-3f, 1.0f, 19.9f, 20.0f, 20.001f,
        88.0f, 1000.0f}) {
    const double expected = naive::softplus(z);
    EXPECT_NEAR(reference::softplus(z), expected, 4e-7 * expected + 1e-37) << z;
  }
  for (float z = -30.0f; z <= 30.0f; z += 0.37f) {
    const double expected = naive::softplus(z);
    EXPECT_NEAR(reference::softplus(z), expected, 4e-7 * expected) << z;
    EXPECT_NEAR(reference::sigmoid(z), naive::sigmoid(z), 4e-7) << z;
  }
}

TEST(NaiveMathTest, YarnFrequenciesHaveTheSpecifiedValues) {
  const std::vector<float> f = naive::yarn_frequencies(160000, 64, 16, 65536, 32, 1);
  const auto expect = [&](size_t i, double value) {
    EXPECT_NEAR(f[i], value, 1e-8 * value + 1e-7 * value) << "pair " << i;
  };
  expect(0, 1);
  expect(1, 0.687656022);
  expect(15, 0.00363553858);
  expect(16, 0.002265625);
  expect(20, 0.000296977778);
  expect(24, 1.953125e-5);
  expect(25, 5.37231267e-6);
  expect(31, 5.68052904e-7);
}

}  // namespace
}  // namespace tandem::test
