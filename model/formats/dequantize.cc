#include "model/formats/dequantize.h"

#include <cstring>

#include "model/formats/blocks.h"
#include "model/formats/iq2_grid.h"

namespace tandem {
namespace {

void expand(const BlockQ8_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block.q[i]);
}

void expand(const BlockQ2K& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int plane = i / 32 % 4;
    const int code = (block.q[32 * half + i % 32] >> (2 * plane)) & 3;
    const int scale = block.scales[i / 16];
    out[i] = d * static_cast<float>(scale & 15) * static_cast<float>(code) -
             dmin * static_cast<float>(scale >> 4);
  }
}

void expand(const BlockQ4K& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int j = 0; j < 8; ++j) {
    const auto [scale, min] = q4k_scale_min(block.scales, j);
    const float step = d * static_cast<float>(scale);
    const float offset = dmin * static_cast<float>(min);
    for (int i = 0; i < 32; ++i) {
      const int code = (block.q[32 * (j / 2) + i] >> (4 * (j % 2))) & 15;
      out[32 * j + i] = step * static_cast<float>(code) - offset;
    }
  }
}

void expand(const BlockQ6K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int plane = i / 32 % 4;
    const int lane = i % 32;
    const int low = (block.q_low[64 * half + 32 * (plane % 2) + lane] >> (4 * (plane / 2))) & 15;
    const int high = (block.q_high[32 * half + lane] >> (2 * plane)) & 3;
    const int code = (low | (high << 4)) - 32;
    const int scale = block.scales[i / 16];
    out[i] = d * static_cast<float>(scale) * static_cast<float>(code);
  }
}

void expand(const BlockIQ2XXS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 8; ++g) {
    uint32_t words[2];
    std::memcpy(words, block.q + 4 * g, sizeof(words));
    const float step = d * (static_cast<float>(2 * (words[1] >> 28) + 1) * 0.125f);
    for (int k = 0; k < 4; ++k) {
      const Iq2GridRow& row = kIq2XxsGrid[(words[0] >> (8 * k)) & 255U];
      const uint32_t signs = iq2_signs((words[1] >> (7 * k)) & 127U);
      for (int j = 0; j < 8; ++j) {
        const float value = step * static_cast<float>(row[static_cast<size_t>(j)]);
        out[32 * g + 8 * k + j] = ((signs >> j) & 1U) != 0 ? -value : value;
      }
    }
  }
}

void expand(const BlockMXFP4& block, float* out) {
  const float scale = e8m0_to_f32(block.e);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * fp4_to_f32(block.q[i]);
    out[i + 16] = scale * fp4_to_f32(static_cast<uint8_t>(block.q[i] >> 4));
  }
}

// Blocks are copied out because a row may start at any address.
template <class Block>
void expand_row(const std::byte* row, int64_t cols, int values, float* out) {
  for (int64_t b = 0; b < cols / values; ++b) {
    Block block;
    std::memcpy(&block, row + b * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
    expand(block, out + b * values);
  }
}

template <class Stored, class Convert>
void convert_row(const std::byte* row, int64_t cols, float* out, Convert convert) {
  for (int64_t i = 0; i < cols; ++i) {
    Stored stored;
    std::memcpy(&stored, row + i * static_cast<int64_t>(sizeof(Stored)), sizeof(Stored));
    out[i] = convert(stored);
  }
}

}  // namespace

void dequantize_row(DType dtype, const std::byte* row, int64_t cols, float* out) {
  const int values = block_values(dtype);
  TANDEM_CHECK(cols >= 0 && cols % values == 0);
  switch (dtype) {
    case DType::kF32:
      if (cols > 0) std::memcpy(out, row, static_cast<size_t>(cols) * sizeof(float));
      return;
    case DType::kF16: return convert_row<uint16_t>(row, cols, out, f16_to_f32);
    case DType::kBF16: return convert_row<uint16_t>(row, cols, out, bf16_to_f32);
    case DType::kI32:
      return convert_row<int32_t>(row, cols, out, [](int32_t v) { return static_cast<float>(v); });
    case DType::kQ8_0: return expand_row<BlockQ8_0>(row, cols, values, out);
    case DType::kQ2_K: return expand_row<BlockQ2K>(row, cols, values, out);
    case DType::kQ4_K: return expand_row<BlockQ4K>(row, cols, values, out);
    case DType::kQ6_K: return expand_row<BlockQ6K>(row, cols, values, out);
    case DType::kIQ2_XXS: return expand_row<BlockIQ2XXS>(row, cols, values, out);
    case DType::kMXFP4: return expand_row<BlockMXFP4>(row, cols, values, out);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
