#include "model/formats/dequantize.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "model/formats/blocks.h"
#include "model/formats/iq2_grid.h"

namespace tandem {
namespace {

template <class Block>
std::vector<float> values_of(DType dtype, const Block& block) {
  EXPECT_EQ(static_cast<int>(sizeof(Block)), block_bytes(dtype));
  // One byte off alignment, since a row may start anywhere.
  std::vector<std::byte> bytes(sizeof(Block) + 1);
  std::memcpy(bytes.data() + 1, &block, sizeof(Block));
  std::vector<float> out(static_cast<size_t>(block_values(dtype)), -1e9f);
  dequantize_row(dtype, bytes.data() + 1, block_values(dtype), out.data());
  return out;
}

constexpr uint16_t kHalf = 0x3800;  // 0.5
constexpr uint16_t kOne = 0x3c00;   // 1
constexpr uint16_t kTwo = 0x4000;   // 2
constexpr uint16_t kFour = 0x4400;  // 4

TEST(DequantizeTest, ReadsPlainTypes) {
  const float f32[] = {1.5f, -2.0f};
  float out[2];
  dequantize_row(DType::kF32, reinterpret_cast<const std::byte*>(f32), 2, out);
  EXPECT_EQ(out[1], -2.0f);
  const uint16_t f16[] = {kHalf, 0xc000};
  dequantize_row(DType::kF16, reinterpret_cast<const std::byte*>(f16), 2, out);
  EXPECT_EQ(out[0], 0.5f);
  EXPECT_EQ(out[1], -2.0f);
  const uint16_t bf16[] = {0x3fc0, 0xc040};
  dequantize_row(DType::kBF16, reinterpret_cast<const std::byte*>(bf16), 2, out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[1], -3.0f);
  const int32_t i32[] = {-7, 129279};
  dequantize_row(DType::kI32, reinterpret_cast<const std::byte*>(i32), 2, out);
  EXPECT_EQ(out[0], -7.0f);
  EXPECT_EQ(out[1], 129279.0f);
}

TEST(DequantizeTest, ReadsHandWorkedQ8_0) {
  BlockQ8_0 block{};
  block.d = kHalf;
  block.q[0] = 127;
  block.q[1] = -128;
  block.q[31] = 3;
  const auto out = values_of(DType::kQ8_0, block);
  EXPECT_EQ(out[0], 63.5f);
  EXPECT_EQ(out[1], -64.0f);
  EXPECT_EQ(out[2], 0.0f);
  EXPECT_EQ(out[31], 1.5f);
}

TEST(DequantizeTest, ReadsHandWorkedQ2K) {
  BlockQ2K block{};
  block.d = kTwo;
  block.dmin = kHalf;
  block.scales[0] = 0x13;              // values 0..15: scale 3, min 1
  block.scales[1] = 0x01;              // values 16..31: scale 1, min 0
  block.scales[8 + 2 * 3 + 1] = 0xf5;  // values 240..255: scale 5, min 15
  block.q[0] = 0x03;                   // value 0: code 3
  block.q[17] = 0x02;                  // value 17: code 2
  block.q[32 + 31] = 0x40;             // value 255: plane 3 of the second half, code 1
  const auto out = values_of(DType::kQ2_K, block);
  EXPECT_EQ(out[0], 2.0f * 3 * 3 - 0.5f);
  EXPECT_EQ(out[1], -0.5f);
  EXPECT_EQ(out[17], 4.0f);
  EXPECT_EQ(out[16], 0.0f);
  EXPECT_EQ(out[255], 2.0f * 5 * 1 - 0.5f * 15);
  EXPECT_EQ(out[254], -7.5f);
  EXPECT_EQ(out[100], 0.0f);
}

TEST(DequantizeTest, ReadsHandWorkedQ4K) {
  BlockQ4K block{};
  block.d = kHalf;
  block.dmin = kTwo;
  block.scales[1] = 7 | 0x80;  // scale 1 = 7; top bits of scale 5 = 2
  block.scales[5] = 3 | 0x40;  // min 1 = 3; top bits of min 5 = 1
  block.scales[9] = 0x21;      // scale 5 = 0x21 = 33, min 5 = 0x12 = 18
  block.q[0] = 0xa0;           // value 32 (sub-block 1, high nibble): code 10
  block.q[64 + 31] = 0xf2;     // value 191 (sub-block 5): code 15; value 159: code 2
  const auto out = values_of(DType::kQ4_K, block);
  EXPECT_EQ(out[32], 0.5f * 7 * 10 - 2.0f * 3);
  EXPECT_EQ(out[33], -6.0f);
  EXPECT_EQ(out[191], 0.5f * 33 * 15 - 2.0f * 18);
  EXPECT_EQ(out[190], -36.0f);
  EXPECT_EQ(out[159], 0.0f);  // scale 4 is zero
  EXPECT_EQ(out[0], 0.0f);
}

TEST(DequantizeTest, ReadsHandWorkedQ6K) {
  BlockQ6K block{};
  block.d = kHalf;
  for (int8_t& scale : block.scales) scale = 1;
  block.scales[0] = -3;
  block.scales[15] = 100;
  block.q_low[0] = 0x0f;             // value 0: low nibble 15
  block.q_high[0] = 0x03;            // value 0: high bits 3 -> code 63
  block.q_low[64 + 32 + 31] = 0x50;  // value 255: plane 3 of the second half, low nibble 5
  block.q_high[32 + 31] = 0x80;      // value 255: high bits 2 -> code 37
  block.q_low[33] = 0x21;            // value 33 (plane 1): code 1; value 97 (plane 3): code 2
  const auto out = values_of(DType::kQ6_K, block);
  EXPECT_EQ(out[0], 0.5f * -3 * 31);
  EXPECT_EQ(out[1], 0.5f * -3 * -32);
  EXPECT_EQ(out[255], 0.5f * 100 * 5);
  EXPECT_EQ(out[33], 0.5f * -31);
  EXPECT_EQ(out[97], 0.5f * -30);
}

TEST(DequantizeTest, ReadsHandWorkedIq2Xxs) {
  BlockIQ2XXS block{};
  block.d = kFour;
  // Group 7: sub-group 2 uses grid row 1 (word 0x0002: value 0 is 43, the others 8) with sign index
  // 3 (values 0 and 1 negative), scale nibble 5: 4 * 11 / 8 = 5.5.
  const uint32_t words[2] = {1U << 16, (5U << 28) | (3U << 14)};
  std::memcpy(block.q + 28, words, sizeof(words));
  const auto out = values_of(DType::kIQ2_XXS, block);
  const size_t at = 7 * 32 + 2 * 8;
  EXPECT_EQ(out[at], -5.5f * 43);
  EXPECT_EQ(out[at + 1], -5.5f * 8);
  EXPECT_EQ(out[at + 2], 5.5f * 8);
  EXPECT_EQ(out[at + 7], 5.5f * 8);
  EXPECT_EQ(out[at - 1], 5.5f * 8);  // grid row 0, same group
  EXPECT_EQ(out[0], 4.0f / 8 * 8);   // scale nibble 0
}

TEST(DequantizeTest, ReadsHandWorkedIq2ParityBit) {
  BlockIQ2XXS block{};
  block.d = kOne;
  const uint32_t words[2] = {0, 1};  // sign index 1: value 0, and value 7 to keep the parity even
  std::memcpy(block.q, words, sizeof(words));
  const auto out = values_of(DType::kIQ2_XXS, block);
  EXPECT_EQ(out[0], -1.0f);
  EXPECT_EQ(out[1], 1.0f);
  EXPECT_EQ(out[7], -1.0f);
}

TEST(DequantizeTest, ReadsHandWorkedMxfp4) {
  BlockMXFP4 block{};
  block.e = 129;       // times 4
  block.q[0] = 0x97;   // value 0: 6; value 16: -0.5
  block.q[15] = 0x0a;  // value 15: -1; value 31: 0
  const auto out = values_of(DType::kMXFP4, block);
  EXPECT_EQ(out[0], 24.0f);
  EXPECT_EQ(out[16], -2.0f);
  EXPECT_EQ(out[15], -4.0f);
  EXPECT_EQ(out[31], 0.0f);
}

TEST(DequantizeTest, WalksEveryBlockOfARow) {
  BlockQ8_0 blocks[3] = {};
  for (int b = 0; b < 3; ++b) {
    blocks[b].d = kOne;
    blocks[b].q[31] = static_cast<int8_t>(b + 1);
  }
  float out[96];
  dequantize_row(DType::kQ8_0, reinterpret_cast<const std::byte*>(blocks), 96, out);
  EXPECT_EQ(out[31], 1.0f);
  EXPECT_EQ(out[63], 2.0f);
  EXPECT_EQ(out[95], 3.0f);
}

TEST(DequantizeTest, AcceptsAnEmptyRow) {
  for (const DType dtype : kAllDTypes) dequantize_row(dtype, nullptr, 0, nullptr);
}

}  // namespace
}  // namespace tandem
