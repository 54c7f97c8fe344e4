#include "model/formats/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "model/formats/dequantize.h"

namespace tandem {
namespace {

std::vector<float> round_trip(DType dtype, const std::vector<float>& in) {
  const auto cols = static_cast<int64_t>(in.size());
  std::vector<std::byte> row(static_cast<size_t>(row_bytes(dtype, cols)));
  quantize_row(dtype, in.data(), cols, row.data());
  std::vector<float> out(in.size());
  dequantize_row(dtype, row.data(), cols, out.data());
  return out;
}

std::vector<float> uniform(size_t count, float low, float high) {
  Rng rng(17);
  std::vector<float> values(count);
  for (float& value : values) value = low + (high - low) * rng.uniform();
  return values;
}

class QuantizeTest : public ::testing::TestWithParam<DType> {};

TEST_P(QuantizeTest, KeepsZerosExactly) {
  for (const float value : round_trip(GetParam(), std::vector<float>(512, 0.0f))) {
    EXPECT_EQ(value, 0.0f);
  }
}

// The worst error of one value, relative to the largest magnitude of its block. Half a code step,
// plus what rounding the scales to their own grid can move a value: the scale grid has 1/63 (Q4_K)
// or 1/15 (Q2_K) of the largest scale, and the offset likewise.
double error_bound(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 0.0;
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    case DType::kI32: return 0.5;  // inputs within [-1, 1]
    case DType::kQ8_0: return 0.5 / 127 * 1.01;
    case DType::kQ6_K: return 0.5 / 31 + 0.5 / 127;
    case DType::kQ4_K: return 2.0 * (0.5 / 15 + 1.0 / 63);  // range is twice the magnitude
    case DType::kQ2_K: return 2.0 * (0.5 / 3 + 1.0 / 15);
    case DType::kMXFP4: return 2.0 / 12;  // scale up to twice what is needed; half of 6 - 4
    case DType::kIQ2_XXS: return 1.0;
  }
  return 0.0;
}

TEST_P(QuantizeTest, StaysWithinItsStepOfRandomValues) {
  const auto in = uniform(2048, -1.0f, 1.0f);
  const auto out = round_trip(GetParam(), in);
  const double bound = error_bound(GetParam());
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_LE(std::fabs(double(out[i]) - double(in[i])), bound) << "value " << i;
  }
}

// Storing the stored values again changes nothing where the code grid contains them.
TEST_P(QuantizeTest, IsStableOnItsOwnValuesForPlainTypes) {
  const DType dtype = GetParam();
  const bool has_own_grid = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
                            dtype == DType::kI32 || dtype == DType::kMXFP4;
  const auto once = round_trip(dtype, uniform(512, -3.0f, 3.0f));
  const auto twice = round_trip(dtype, once);
  if (has_own_grid) {
    EXPECT_EQ(once, twice);
  } else {
    double worst = 0.0;
    for (size_t i = 0; i < once.size(); ++i) {
      worst = std::max(worst, std::fabs(double(once[i]) - double(twice[i])));
    }
    EXPECT_LE(worst, 3.0 * error_bound(dtype));
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllTypes, QuantizeTest, ::testing::ValuesIn(kAllDTypes),
    [](const auto& param) { return std::string(dtype_name(param.param)); });

TEST(QuantizeRowTest, HalvesTheSquaredErrorWithIq2Search) {
  // A two-bit codebook leaves about a quarter of the energy of normal weights; without signs or
  // magnitudes nothing would be explained.
  Rng rng(5);
  std::vector<float> in(1024);
  for (float& value : in) {  // Irwin-Hall sum, close to a normal distribution
    value = -6.0f;
    for (int i = 0; i < 12; ++i) value += rng.uniform();
  }
  const auto out = round_trip(DType::kIQ2_XXS, in);
  double energy = 0.0;
  double error = 0.0;
  for (size_t i = 0; i < in.size(); ++i) {
    energy += double(in[i]) * in[i];
    error += (double(in[i]) - out[i]) * (double(in[i]) - out[i]);
  }
  EXPECT_LT(error, 0.5 * energy);
}

TEST(QuantizeRowTest, FindsExactIq2Values) {
  // Values taken from the format itself: scale 0.25 * 31 / 8, every fourth row, even signs.
  std::vector<float> in;
  for (int i = 0; i < 256; ++i) in.push_back(i % 8 == 0 ? 43.0f : 8.0f);
  in[0] = -43.0f;
  in[1] = -8.0f;
  for (float& value : in) value *= 0.25f * 3.875f;
  EXPECT_EQ(round_trip(DType::kIQ2_XXS, in), in);
}

TEST(QuantizeRowTest, RoundsMxfp4TiesToTheEvenCode) {
  std::vector<float> in(32, 0.0f);
  in[0] = 6.0f;  // fixes the scale at 1
  in[1] = 0.25f;
  in[2] = 0.75f;
  in[3] = -2.5f;
  in[4] = 5.0f;
  in[5] = 3.5f;
  const auto out = round_trip(DType::kMXFP4, in);
  EXPECT_EQ(out[1], 0.0f);
  EXPECT_EQ(out[2], 1.0f);
  EXPECT_EQ(out[3], -2.0f);
  EXPECT_EQ(out[4], 4.0f);
  EXPECT_EQ(out[5], 4.0f);
}

TEST(QuantizeRowTest, SaturatesI32) {
  const float in[2] = {3e9f, -3e9f};
  int32_t out[2];
  quantize_row(DType::kI32, in, 2, reinterpret_cast<std::byte*>(out));
  EXPECT_EQ(out[0], 2147483647);
  EXPECT_EQ(out[1], -2147483647 - 1);
}

}  // namespace
}  // namespace tandem
