#include "model/formats/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tandem {
namespace {

TEST(F16Test, ReadsKnownCodes) {
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_f32(0xc000), -2.0f);
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0x0400), 0x1p-14f);
  EXPECT_EQ(f16_to_f32(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(f16_to_f32(0x8000)));
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7c01)));
}

TEST(F16Test, RoundTripsEveryCode) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const float value = f16_to_f32(static_cast<uint16_t>(code));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    } else {
      EXPECT_EQ(f32_to_f16(value), code);
    }
  }
}

TEST(F16Test, RoundsEveryMidpointToTheEvenCode) {
  for (uint32_t code = 0; code < 0x7bff; ++code) {
    const float low = f16_to_f32(static_cast<uint16_t>(code));
    const float high = f16_to_f32(static_cast<uint16_t>(code + 1));
    const float middle = (low + high) / 2;  // exact: one more bit than f16 has
    const auto even = static_cast<uint16_t>(code + (code & 1));
    ASSERT_EQ(f32_to_f16(middle), even) << code;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << code;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), code) << code;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), code + 1) << code;
  }
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(Bf16Test, RoundTripsEveryCodeAndRoundsToEven) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const float value = bf16_to_f32(static_cast<uint16_t>(code));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
    } else {
      EXPECT_EQ(f32_to_bf16(value), code);
    }
  }
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);                     // half-way, even below
  EXPECT_EQ(f32_to_bf16(1.0f + 0x3p-8f), 0x3f82);                     // half-way, even above
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f800001U)), 0x7fc0);  // a NaN, not infinity
}

TEST(E8m0Test, IsAPowerOfTwo) {
  EXPECT_EQ(e8m0_to_f32(127), 1.0f);
  EXPECT_EQ(e8m0_to_f32(128), 2.0f);
  EXPECT_EQ(e8m0_to_f32(1), 0x1p-126f);
  EXPECT_EQ(e8m0_to_f32(0), 0x1p-127f);
  EXPECT_EQ(e8m0_to_f32(254), 0x1p127f);
}

TEST(Fp4Test, HasItsSixteenValues) {
  const float expected[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  for (uint8_t code = 0; code < 8; ++code) {
    EXPECT_EQ(fp4_to_f32(code), expected[code]);
    EXPECT_EQ(fp4_to_f32(static_cast<uint8_t>(code | 8)), -expected[code]);
    EXPECT_EQ(fp4_to_f32(static_cast<uint8_t>(code | 0xf0)), expected[code]) << "low bits only";
  }
}

TEST(E4m3Test, ReadsKnownCodes) {
  EXPECT_EQ(e4m3_to_f32(0x38), 1.0f);
  EXPECT_EQ(e4m3_to_f32(0x7e), 448.0f);
  EXPECT_EQ(e4m3_to_f32(0x01), 0x1p-9f);
  EXPECT_EQ(e4m3_to_f32(0x08), 0x1p-6f);
  EXPECT_EQ(e4m3_to_f32(0xbc), -1.5f);
  EXPECT_EQ(e4m3_to_f32(0x7f), 0.0f);
  EXPECT_EQ(e4m3_to_f32(0xff), 0.0f);
}

TEST(Q4KTest, UnpacksSixBitScalesAndMins) {
  // Pairs 0 and 4: scale 0x2a, min 0x15; scale 0x3c = 0b11'1100, min 0x19 = 0b01'1001.
  uint8_t scales[12] = {};
  scales[0] = 0x2a | 0xc0;  // top bits of scale 4
  scales[4] = 0x15 | 0x40;  // top bits of min 4
  scales[8] = 0x9c;         // low nibbles: scale 4 is 0xc, min 4 is 0x9
  EXPECT_EQ(q4k_scale_min(scales, 0).scale, 0x2a);
  EXPECT_EQ(q4k_scale_min(scales, 0).min, 0x15);
  EXPECT_EQ(q4k_scale_min(scales, 4).scale, 0x3c);
  EXPECT_EQ(q4k_scale_min(scales, 4).min, 0x19);
}

}  // namespace
}  // namespace tandem
