#include "model/formats/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/formats/blocks.h"
#include "model/formats/iq2_grid.h"

namespace tandem {
namespace {

float max_magnitude(const float* x, int count) {
  float largest = 0.0f;
  for (int i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

// The nearest integer to x / step within [low, high]; ties to even; 0 for a zero step.
int nearest_code(float x, float step, int low, int high) {
  if (step == 0.0f) return std::clamp(0, low, high);
  const float code = std::nearbyintf(x / step);
  return static_cast<int>(std::clamp(code, static_cast<float>(low), static_cast<float>(high)));
}

void pack(const float* x, BlockQ8_0& block) {
  block.d = f32_to_f16(max_magnitude(x, 32) / 127.0f);
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 32; ++i) block.q[i] = static_cast<int8_t>(nearest_code(x[i], d, -127, 127));
}

// Step and offset (value = step * code - offset, offset >= 0) that span a sub-block.
struct StepOffset {
  float step;
  float offset;
};

StepOffset span_of(const float* x, int count, int code_max) {
  const auto [low, high] = std::minmax_element(x, x + count);
  const float offset = -std::min(*low, 0.0f);
  return {(std::max(*high, 0.0f) + offset) / static_cast<float>(code_max), offset};
}

// Both K-quants with offsets: spans of sub-blocks, rounded to multiples of two f16 units.
template <int kSubBlocks, int kScaleMax, int kCodeMax>
struct OffsetCodes {
  static constexpr int kValues = 256 / kSubBlocks;
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[kSubBlocks];
  uint8_t mins[kSubBlocks];
  uint8_t codes[256];

  explicit OffsetCodes(const float* x) {
    StepOffset spans[kSubBlocks];
    float step_max = 0.0f;
    float offset_max = 0.0f;
    for (int j = 0; j < kSubBlocks; ++j) {
      spans[j] = span_of(x + j * kValues, kValues, kCodeMax);
      step_max = std::max(step_max, spans[j].step);
      offset_max = std::max(offset_max, spans[j].offset);
    }
    d = f32_to_f16(step_max / kScaleMax);
    dmin = f32_to_f16(offset_max / kScaleMax);
    const float unit = f16_to_f32(d);
    const float unit_min = f16_to_f32(dmin);
    for (int j = 0; j < kSubBlocks; ++j) {
      scales[j] = static_cast<uint8_t>(nearest_code(spans[j].step, unit, 0, kScaleMax));
      mins[j] = static_cast<uint8_t>(nearest_code(spans[j].offset, unit_min, 0, kScaleMax));
      const float step = unit * static_cast<float>(scales[j]);
      const float offset = unit_min * static_cast<float>(mins[j]);
      for (int i = j * kValues; i < (j + 1) * kValues; ++i) {
        codes[i] = static_cast<uint8_t>(nearest_code(x[i] + offset, step, 0, kCodeMax));
      }
    }
  }
};

void pack(const float* x, BlockQ2K& block) {
  const OffsetCodes<16, 15, 3> from(x);
  block.d = from.d;
  block.dmin = from.dmin;
  std::memset(block.q, 0, sizeof(block.q));
  for (int j = 0; j < 16; ++j) {
    block.scales[j] = static_cast<uint8_t>(from.scales[j] | (from.mins[j] << 4));
  }
  for (int i = 0; i < 256; ++i) {
    uint8_t& byte = block.q[32 * (i / 128) + i % 32];
    byte = static_cast<uint8_t>(byte | (from.codes[i] << (2 * (i / 32 % 4))));
  }
}

void pack(const float* x, BlockQ4K& block) {
  const OffsetCodes<8, 63, 15> from(x);
  block.d = from.d;
  block.dmin = from.dmin;
  for (int j = 0; j < 4; ++j) {
    const int scale_high = from.scales[j + 4];
    const int min_high = from.mins[j + 4];
    block.scales[j] = static_cast<uint8_t>(from.scales[j] | ((scale_high >> 4) << 6));
    block.scales[j + 4] = static_cast<uint8_t>(from.mins[j] | ((min_high >> 4) << 6));
    block.scales[j + 8] = static_cast<uint8_t>((scale_high & 15) | ((min_high & 15) << 4));
  }
  for (int i = 0; i < 128; ++i) {
    const uint8_t* pair = from.codes + 64 * (i / 32) + i % 32;
    block.q[i] = static_cast<uint8_t>(pair[0] | (pair[32] << 4));
  }
}

void pack(const float* x, BlockQ6K& block) {
  float steps[16];
  for (int j = 0; j < 16; ++j) steps[j] = max_magnitude(x + 16 * j, 16) / 31.0f;
  block.d = f32_to_f16(max_magnitude(steps, 16) / 127.0f);
  const float d = f16_to_f32(block.d);
  std::memset(block.q_low, 0, sizeof(block.q_low));
  std::memset(block.q_high, 0, sizeof(block.q_high));
  for (int j = 0; j < 16; ++j) {
    block.scales[j] = static_cast<int8_t>(nearest_code(steps[j], d, 0, 127));
  }
  for (int i = 0; i < 256; ++i) {
    const int scale = block.scales[i / 16];
    const int code = nearest_code(x[i], d * static_cast<float>(scale), -32, 31) + 32;
    const int half = i / 128;
    const int plane = i / 32 % 4;
    uint8_t& low = block.q_low[64 * half + 32 * (plane % 2) + i % 32];
    uint8_t& high = block.q_high[32 * half + i % 32];
    low = static_cast<uint8_t>(low | ((code & 15) << (4 * (plane / 2))));
    high = static_cast<uint8_t>(high | ((code >> 4) << (2 * plane)));
  }
}

uint8_t nearest_fp4(float x) {
  // Half-way points between neighbouring magnitudes; a tie goes to the even code.
  constexpr float kMiddles[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const float magnitude = std::fabs(x);
  uint8_t code = 0;
  for (uint8_t i = 0; i < 7; ++i) {
    if (magnitude > kMiddles[i] || (magnitude == kMiddles[i] && (i & 1) != 0)) {
      code = static_cast<uint8_t>(i + 1);
    }
  }
  return static_cast<uint8_t>(code | (std::signbit(x) ? 8 : 0));
}

void pack(const float* x, BlockMXFP4& block) {
  // The smallest power of two that brings the largest magnitude to at most 6.
  int exponent = 0;
  const float fraction = std::frexp(max_magnitude(x, 32) / 6.0f, &exponent);
  if (fraction == 0.5f) --exponent;
  block.e =
      fraction == 0.0f ? uint8_t{0} : static_cast<uint8_t>(std::clamp(exponent + 127, 0, 254));
  const float scale = e8m0_to_f32(block.e);
  for (int i = 0; i < 16; ++i) {
    block.q[i] =
        static_cast<uint8_t>(nearest_fp4(x[i] / scale) | (nearest_fp4(x[i + 16] / scale) << 4));
  }
}

// One sub-group of eight values in IQ2_XXS: magnitudes to match, with their signs. Only an even
// number of minus signs can be stored, so the value that loses least gives up its own sign.
struct Iq2Target {
  float magnitude[8];
  uint32_t sign_index = 0;

  explicit Iq2Target(const float* x) {
    uint32_t signs = 0;
    int smallest = 0;
    for (int j = 0; j < 8; ++j) {
      magnitude[j] = std::fabs(x[j]);
      if (std::signbit(x[j])) signs |= 1U << j;
      if (magnitude[j] < magnitude[smallest]) smallest = j;
    }
    if ((std::popcount(signs) & 1) != 0) {
      signs ^= 1U << smallest;
      magnitude[smallest] = -magnitude[smallest];
    }
    sign_index = signs & 127U;
  }

  // The grid row nearest to the magnitudes in units of `step`; adds its squared error.
  uint32_t nearest_row(float step, double& error) const {
    uint32_t best = 0;
    float best_error = std::numeric_limits<float>::max();
    for (uint32_t row = 0; row < 256; ++row) {
      float sum = 0.0f;
      for (size_t j = 0; j < 8; ++j) {
        const float difference = step * static_cast<float>(kIq2XxsGrid[row][j]) - magnitude[j];
        sum += difference * difference;
      }
      if (sum < best_error) {
        best_error = sum;
        best = row;
      }
    }
    error += best_error;
    return best;
  }
};

void pack_iq2_group(const float* x, float d, uint32_t words[2]) {
  const Iq2Target targets[4] = {
      Iq2Target(x), Iq2Target(x + 8), Iq2Target(x + 16), Iq2Target(x + 24)};
  double best_error = std::numeric_limits<double>::max();
  for (uint32_t z = 0; z < 16; ++z) {
    const float step = d * (static_cast<float>(2 * z + 1) * 0.125f);
    uint32_t trial[2] = {0, z << 28};
    double error = 0.0;
    for (int k = 0; k < 4; ++k) {
      trial[0] |= targets[k].nearest_row(step, error) << (8 * k);
      trial[1] |= targets[k].sign_index << (7 * k);
    }
    if (error < best_error) {
      best_error = error;
      std::memcpy(words, trial, sizeof(trial));
    }
  }
}

void pack(const float* x, BlockIQ2XXS& block) {
  // The largest scale (31/8) times the largest magnitude (43) reaches the largest value.
  block.d = f32_to_f16(max_magnitude(x, 256) / (43.0f * 3.875f));
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 8; ++g) {
    uint32_t words[2] = {};
    pack_iq2_group(x + 32 * g, d, words);
    std::memcpy(block.q + 4 * g, words, sizeof(words));
  }
}

template <class Block>
void pack_row(const float* in, int64_t cols, int values, std::byte* out) {
  for (int64_t b = 0; b < cols / values; ++b) {
    Block block;
    pack(in + b * values, block);
    std::memcpy(out + b * static_cast<int64_t>(sizeof(Block)), &block, sizeof(Block));
  }
}

template <class Stored, class Convert>
void convert_row(const float* in, int64_t cols, std::byte* out, Convert convert) {
  for (int64_t i = 0; i < cols; ++i) {
    const Stored stored = convert(in[i]);
    std::memcpy(out + i * static_cast<int64_t>(sizeof(Stored)), &stored, sizeof(Stored));
  }
}

int32_t nearest_i32(float x) {
  return static_cast<int32_t>(
      std::clamp(std::nearbyint(static_cast<double>(x)), -0x1p31, 0x1p31 - 1));
}

}  // namespace

void quantize_row(DType dtype, const float* in, int64_t cols, std::byte* out) {
  const int values = block_values(dtype);
  TANDEM_CHECK(cols >= 0 && cols % values == 0);
  switch (dtype) {
    case DType::kF32:
      if (cols > 0) std::memcpy(out, in, static_cast<size_t>(cols) * sizeof(float));
      return;
    case DType::kF16: return convert_row<uint16_t>(in, cols, out, f32_to_f16);
    case DType::kBF16: return convert_row<uint16_t>(in, cols, out, f32_to_bf16);
    case DType::kI32: return convert_row<int32_t>(in, cols, out, nearest_i32);
    case DType::kQ8_0: return pack_row<BlockQ8_0>(in, cols, values, out);
    case DType::kQ2_K: return pack_row<BlockQ2K>(in, cols, values, out);
    case DType::kQ4_K: return pack_row<BlockQ4K>(in, cols, values, out);
    case DType::kQ6_K: return pack_row<BlockQ6K>(in, cols, values, out);
    case DType::kIQ2_XXS: return pack_row<BlockIQ2XXS>(in, cols, values, out);
    case DType::kMXFP4: return pack_row<BlockMXFP4>(in, cols, values, out);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem
