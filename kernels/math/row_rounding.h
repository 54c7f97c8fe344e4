#pragma once

#include <cstdint>

#include "kernels/math/host_device.h"

namespace tandem {

/// 2^k for -126 <= k <= 127.
TANDEM_HOST_DEVICE inline float exp2_int(int k) {
  return bits_to_float(uint32_t(k + 127) << 23);
}

/// The smallest k with 2^k >= x, from the exponent bits. Limits: x normal and positive.
TANDEM_HOST_DEVICE inline int ceil_log2(float x) {
  const uint32_t bits = float_to_bits(x);
  return int(bits >> 23) - 127 + ((bits & 0x7fffffU) != 0 ? 1 : 0);
}

/// x to the nearest e4m3 value, ties to the even code. Limits: |x| <= 448.
TANDEM_HOST_DEVICE inline float round_e4m3(float x) {
  const float magnitude = x < 0 ? -x : x;
  // Above 2^-6 three mantissa bits are kept; below, steps of 2^-9.
  int k = int(float_to_bits(magnitude) >> 23) - 127;
  if (k < -6) k = -6;
  const float step = exp2_int(k - 3);
  const float rounded = round_half_even(magnitude / step) * step;
  return x < 0 ? -rounded : rounded;
}

/// x to the nearest e2m1 value (0, .5, 1, 1.5, 2, 3, 4, 6), ties to the even code. Limits: |x|
/// <= 6.
TANDEM_HOST_DEVICE inline float round_e2m1(float x) {
  const float magnitude = x < 0 ? -x : x;
  const float step = magnitude < 2 ? 0.5f : (magnitude < 4 ? 1.0f : 2.0f);
  const float rounded = round_half_even(magnitude / step) * step;
  return x < 0 ? -rounded : rounded;
}

}  // namespace tandem
