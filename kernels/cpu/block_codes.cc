#include "kernels/cpu/block_codes.h"

#include <cstring>

#include "base/check.h"
#include "model/formats/blocks.h"
#include "model/formats/iq2_grid.h"

namespace tandem::cpu {
namespace {

/// A block may lie at any address.
template <class Block>
Block copy_block(const std::byte* block) {
  Block out;
  std::memcpy(&out, block, sizeof(out));
  return out;
}

void expand_q4k(const std::byte* raw, BlockCodes256& out) {
  const auto block = copy_block<BlockQ4K>(raw);
  for (int pair = 0; pair < 4; ++pair) {
    for (int i = 0; i < 32; ++i) {
      out.codes[64 * pair + i] = block.q[32 * pair + i] & 15U;
      out.codes[64 * pair + 32 + i] = block.q[32 * pair + i] >> 4;
    }
  }
  for (int j = 0; j < 8; ++j) {
    const Q4KScaleMin sm = q4k_scale_min(block.scales, j);
    out.scales[2 * j] = out.scales[2 * j + 1] = sm.scale;
    out.mins[2 * j] = out.mins[2 * j + 1] = sm.min;
  }
  out.d = f16_to_f32(block.d);
  out.dmin = f16_to_f32(block.dmin);
}

void expand_q2k(const std::byte* raw, BlockCodes256& out) {
  const auto block = copy_block<BlockQ2K>(raw);
  for (int h = 0; h < 2; ++h) {
    for (int p = 0; p < 4; ++p) {
      for (int i = 0; i < 32; ++i) {
        out.codes[128 * h + 32 * p + i] =
            static_cast<uint8_t>((block.q[32 * h + i] >> (2 * p)) & 3U);
      }
    }
  }
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = block.scales[g] & 15U;
    out.mins[g] = block.scales[g] >> 4;
  }
  out.d = f16_to_f32(block.d);
  out.dmin = f16_to_f32(block.dmin);
}

void expand_q6k(const std::byte* raw, BlockCodes256& out) {
  const auto block = copy_block<BlockQ6K>(raw);
  for (int h = 0; h < 2; ++h) {
    for (int p = 0; p < 4; ++p) {
      for (int i = 0; i < 32; ++i) {
        const unsigned byte = block.q_low[64 * h + 32 * (p & 1) + i];
        const unsigned low = p < 2 ? byte & 15U : byte >> 4;
        const unsigned high = (block.q_high[32 * h + i] >> (2 * p)) & 3U;
        out.codes[128 * h + 32 * p + i] = static_cast<uint8_t>(low | (high << 4));
      }
    }
  }
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = block.scales[g];
    out.mins[g] = 0;
  }
  out.d = f16_to_f32(block.d);
  out.dmin = 0;
}

void expand_iq2(const std::byte* raw, BlockCodes256& out) {
  constexpr int kZero = 64;
  const auto block = copy_block<BlockIQ2XXS>(raw);
  for (int g = 0; g < 8; ++g) {
    uint32_t a = 0;
    uint32_t b = 0;
    std::memcpy(&a, block.q + 4 * g, 4);
    std::memcpy(&b, block.q + 4 * g + 2, 4);
    for (int sub = 0; sub < 4; ++sub) {
      const Iq2GridRow& row = kIq2XxsGrid[(a >> (8 * sub)) & 255U];
      const unsigned signs = iq2_signs((b >> (7 * sub)) & 127U);
      for (int i = 0; i < 8; ++i) {
        const int magnitude = row[i];
        const int value = ((signs >> i) & 1U) != 0 ? -magnitude : magnitude;
        out.codes[32 * g + 8 * sub + i] = static_cast<uint8_t>(kZero + value);
      }
    }
    out.scales[2 * g] = out.scales[2 * g + 1] = static_cast<int16_t>(2 * (b >> 28) + 1);
    out.mins[2 * g] = out.mins[2 * g + 1] = 0;
  }
  out.d = f16_to_f32(block.d) * 0.125f;
  out.dmin = 0;
}

}  // namespace

void expand_codes(DType dtype, const std::byte* block, BlockCodes256& out) {
  switch (dtype) {
    case DType::kQ2_K: return expand_q2k(block, out);
    case DType::kQ4_K: return expand_q4k(block, out);
    case DType::kQ6_K: return expand_q6k(block, out);
    case DType::kIQ2_XXS: return expand_iq2(block, out);
    default: TANDEM_UNREACHABLE();
  }
}

void expand_codes(DType dtype, const std::byte* block, BlockCodes32& out) {
  if (dtype == DType::kQ8_0) {
    const auto q8 = copy_block<BlockQ8_0>(block);
    std::memcpy(out.values, q8.q, sizeof(out.values));
    out.d = f16_to_f32(q8.d);
    return;
  }
  TANDEM_CHECK(dtype == DType::kMXFP4);
  // Twice the e2m1 values, so that they are integers.
  constexpr int8_t kTwice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const auto fp4 = copy_block<BlockMXFP4>(block);
  for (int i = 0; i < 16; ++i) {
    out.values[i] = kTwice[fp4.q[i] & 15U];
    out.values[16 + i] = kTwice[fp4.q[i] >> 4];
  }
  out.d = e8m0_to_f32(fp4.e) * 0.5f;
}

}  // namespace tandem::cpu
