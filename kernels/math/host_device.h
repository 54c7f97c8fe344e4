#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define TANDEM_HOST_DEVICE __host__ __device__
#else
#define TANDEM_HOST_DEVICE
#endif

namespace tandem {

TANDEM_HOST_DEVICE inline uint32_t float_to_bits(float x) {
  uint32_t bits = 0;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

TANDEM_HOST_DEVICE inline float bits_to_float(uint32_t bits) {
  float x = 0;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

/// To the nearest integer, ties to even.
TANDEM_HOST_DEVICE inline float round_half_even(float x) {
  return rintf(x);
}

}  // namespace tandem
