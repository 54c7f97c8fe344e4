#pragma once

#include <bit>
#include <cstdint>

namespace tandem {

// The blocks of the quantised types exactly as a file holds them, and the small number formats they
// are made of. Little-endian. Plain constexpr code without containers, so that device code can
// include it. The conversions use no processor extension: an inline function that differs between
// translation units with different flags would break the one-definition rule, and the fast paths
// have their own wide conversions.

static_assert(std::endian::native == std::endian::little, "block formats are little-endian");

/// 32 values: d * q[i].
struct BlockQ8_0 {
  uint16_t d;  // f16
  int8_t q[32];
};

/// 256 values in 16 sub-blocks of 16. Value 128h + 32p + l has the code (q[32h + l] >> 2p) & 3 and
/// the scale byte s = scales[8h + 2p + (l >= 16)]: d * (s & 15) * code - dmin * (s >> 4).
struct BlockQ2K {
  uint8_t scales[16];
  uint8_t q[64];
  uint16_t d;     // f16
  uint16_t dmin;  // f16
};

/// 256 values in 8 sub-blocks of 32. Value i of sub-block j has the code in a nibble of
/// q[32 * (j / 2) + i] (low if j is even): d * scale_j * code - dmin * min_j.
/// See q4k_scale_min() for scale_j and min_j.
struct BlockQ4K {
  uint16_t d;     // f16
  uint16_t dmin;  // f16
  uint8_t scales[12];
  uint8_t q[128];
};

/// 256 values in 16 sub-blocks of 16: d * scales[i / 16] * (code_i - 32), codes of 6 bits.
/// Value 128h + 32p + l: low nibble plane q_low[64h + 32(p & 1) + l] (low nibble if p < 2), two
/// high bits (q_high[32h + l] >> 2p) & 3.
struct BlockQ6K {
  uint8_t q_low[128];
  uint8_t q_high[64];
  int8_t scales[16];
  uint16_t d;  // f16
};

/// 256 values in 8 groups of 32. Group g is two 32-bit words a, b in q[4g .. 4g+3]. Sub-group k of
/// 8 values: grid row (a >> 8k) & 255, signs (b >> 7k) & 127; group scale (2 * (b >> 28) + 1) / 8.
struct BlockIQ2XXS {
  uint16_t d;  // f16
  uint16_t q[32];
};

/// 32 values: fp4(code) * 2^(e - 127); values 0..15 in the low nibbles, 16..31 in the high ones.
struct BlockMXFP4 {
  uint8_t e;
  uint8_t q[16];
};

static_assert(sizeof(BlockQ8_0) == 34 && alignof(BlockQ8_0) == 2);
static_assert(sizeof(BlockQ2K) == 84 && alignof(BlockQ2K) == 2);
static_assert(sizeof(BlockQ4K) == 144 && alignof(BlockQ4K) == 2);
static_assert(sizeof(BlockQ6K) == 210 && alignof(BlockQ6K) == 2);
static_assert(sizeof(BlockIQ2XXS) == 66 && alignof(BlockIQ2XXS) == 2);
static_assert(sizeof(BlockMXFP4) == 17 && alignof(BlockMXFP4) == 1);

/// Exact.
constexpr float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 31U;
  const uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign == 0 ? magnitude : -magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

/// Round to nearest, ties to even; too large becomes infinity; a NaN stays a (quiet) NaN.
constexpr uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return static_cast<uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  }
  if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // >= 65520
  if (magnitude >= 0x38800000U) {                                              // >= 2^-14
    const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
  }
  if (magnitude < 0x33000000U) return static_cast<uint16_t>(sign);  // < 2^-25
  const uint32_t mantissa = (magnitude & 0x7fffffU) | 0x800000U;
  const uint32_t shift = 126U - (magnitude >> 23);  // 14..24: the result counts units of 2^-24
  const uint32_t rest = mantissa & ((1U << shift) - 1U);
  const uint32_t half = 1U << (shift - 1U);
  uint32_t code = mantissa >> shift;
  if (rest > half || (rest == half && (code & 1U) != 0)) ++code;
  return static_cast<uint16_t>(sign | code);
}

/// Exact.
constexpr float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Round to nearest, ties to even; a NaN stays a (quiet) NaN.
constexpr uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// 2^(e - 127); 0 is the subnormal 2^-127, 255 is infinity.
constexpr float e8m0_to_f32(uint8_t e) {
  return std::bit_cast<float>(e == 0 ? 0x00400000U : static_cast<uint32_t>(e) << 23);
}

/// The e2m1 value of the low four bits of `code`: 0, .5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign.
constexpr float fp4_to_f32(uint8_t code) {
  constexpr float kMagnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const float magnitude = kMagnitudes[code & 7U];
  return (code & 8U) == 0 ? magnitude : -magnitude;
}

/// The e4m3fn value of `code`: bias 7, at most 448. The two NaN codes read as zero.
constexpr float e4m3_to_f32(uint8_t code) {
  const uint32_t exponent = (code >> 3) & 15U;
  const uint32_t mantissa = code & 7U;
  float magnitude = 0.0f;
  if (exponent == 0) {
    magnitude = static_cast<float>(mantissa) * 0x1p-9f;
  } else if ((code & 0x7fU) != 0x7fU) {
    magnitude = std::bit_cast<float>(((exponent + 120U) << 23) | (mantissa << 20));
  }
  return (code & 0x80U) == 0 ? magnitude : -magnitude;
}

struct Q4KScaleMin {
  uint8_t scale;  // 0..63
  uint8_t min;    // 0..63
};

/// Scale and minimum of sub-block `j` (0..7) from the 12 packed bytes of a Q4_K block: the first
/// four pairs lie in the low six bits, the last four are split over nibbles and the two top bits.
constexpr Q4KScaleMin q4k_scale_min(const uint8_t* scales, int j) {
  if (j < 4) {
    return {static_cast<uint8_t>(scales[j] & 63U), static_cast<uint8_t>(scales[j + 4] & 63U)};
  }
  return {
      static_cast<uint8_t>((scales[j + 4] & 15U) | ((scales[j - 4] >> 6U) << 4U)),
      static_cast<uint8_t>((scales[j + 4] >> 4U) | ((scales[j] >> 6U) << 4U))};
}

}  // namespace tandem
