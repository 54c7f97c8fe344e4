#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/core/views.h"

namespace tandem::reference {

// Float32 building blocks of the references. Sums run in one documented order, so that a row's
// result depends on nothing but the row.

/// sum_i a[i] b[i]: 16 interleaved partial sums, then added pairwise from the top half down.
float dot(const float* a, const float* b, int64_t n);

/// mean_i x[i]^2, summed as dot does.
float mean_square(const float* x, int64_t n);

/// out[i] = x[i] * scale * weight[i], scale = 1 / sqrt(mean_square + eps). out may be x.
void rms_norm(const float* x, VectorView weight, float eps, float* out);

/// Rotates the last rotary.dim of `n` values by pos, as adjacent pairs; by -pos if `inverse`.
/// The angle is the float32 product pos * frequency.
void rotate_tail(float* x, int64_t n, RotaryView rotary, int64_t pos, bool inverse);

/// Rounds groups of 64 values to e4m3 with a power-of-two scale. Limits: n a multiple of 64.
void round_fp8_groups(float* x, int64_t n);

/// Walsh-Hadamard transform in natural order, scaled by 1 / sqrt(n). Limits: n a power of two.
void hadamard(float* x, int64_t n);

/// Rounds groups of 32 values to e2m1 with a power-of-two scale. Limits: n a multiple of 32.
void round_fp4_groups(float* x, int64_t n);

inline float sigmoid(float z) {
  return 1.0f / (1.0f + std::exp(-z));
}

/// log(1 + e^z) without overflow.
inline float softplus(float z) {
  if (z > 20.0f) return z;
  if (z < -20.0f) return std::exp(z);
  return std::log1p(std::exp(z));
}

}  // namespace tandem::reference
