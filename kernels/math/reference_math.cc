#include "kernels/math/reference_math.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/math/row_rounding.h"

namespace tandem::reference {
namespace {

// 16 lanes as four vectors of the width that every machine has: a wider type would live in memory.
constexpr int kLanes = 16;
constexpr int kWidth = 4;
constexpr int kVectors = kLanes / kWidth;
typedef float Vector __attribute__((vector_size(kWidth * sizeof(float))));

float sum_lanes(const Vector (&lanes)[kVectors]) {
  float sums[kLanes];
  std::memcpy(sums, lanes, sizeof(sums));
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

}  // namespace

float dot(const float* a, const float* b, int64_t n) {
  Vector sum[kVectors] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int v = 0; v < kVectors; ++v) {
      Vector x;
      Vector y;
      std::memcpy(&x, a + i + v * kWidth, sizeof(x));
      std::memcpy(&y, b + i + v * kWidth, sizeof(y));
      sum[v] += x * y;
    }
  }
  for (int lane = 0; i < n; ++i, ++lane) sum[lane / kWidth][lane % kWidth] += a[i] * b[i];
  return sum_lanes(sum);
}

float mean_square(const float* x, int64_t n) {
  return dot(x, x, n) / static_cast<float>(n);
}

void rms_norm(const float* x, VectorView weight, float eps, float* out) {
  const float scale = 1.0f / std::sqrt(mean_square(x, weight.size) + eps);
  for (int64_t i = 0; i < weight.size; ++i) out[i] = x[i] * scale * weight.data[i];
}

void rotate_tail(float* x, int64_t n, RotaryView rotary, int64_t pos, bool inverse) {
  float* tail = x + (n - rotary.dim);
  for (int64_t i = 0; i < rotary.dim / 2; ++i) {
    const float angle = static_cast<float>(pos) * rotary.frequencies[i];
    const float c = std::cos(angle);
    const float s = inverse ? -std::sin(angle) : std::sin(angle);
    const float even = tail[2 * i];
    const float odd = tail[2 * i + 1];
    tail[2 * i] = even * c - odd * s;
    tail[2 * i + 1] = even * s + odd * c;
  }
}

void round_fp8_groups(float* x, int64_t n) {
  constexpr int64_t kGroup = 64;
  constexpr float kE4m3Max = 448.0f;
  TANDEM_CHECK(n % kGroup == 0);
  for (int64_t begin = 0; begin < n; begin += kGroup) {
    float largest = 1e-4f;
    for (int64_t i = begin; i < begin + kGroup; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float scale = exp2_int(ceil_log2(largest * (1.0f / kE4m3Max)));
    for (int64_t i = begin; i < begin + kGroup; ++i) {
      x[i] = round_e4m3(std::clamp(x[i] / scale, -kE4m3Max, kE4m3Max)) * scale;
    }
  }
}

void hadamard(float* x, int64_t n) {
  for (int64_t stride = 1; stride < n; stride *= 2) {
    for (int64_t begin = 0; begin < n; begin += 2 * stride) {
      for (int64_t i = begin; i < begin + stride; ++i) {
        const float a = x[i];
        const float b = x[i + stride];
        x[i] = a + b;
        x[i + stride] = a - b;
      }
    }
  }
  const float scale = 1.0f / std::sqrt(static_cast<float>(n));
  for (int64_t i = 0; i < n; ++i) x[i] *= scale;
}

void round_fp4_groups(float* x, int64_t n) {
  constexpr int64_t kGroup = 32;
  constexpr float kE2m1Max = 6.0f;
  TANDEM_CHECK(n % kGroup == 0);
  for (int64_t begin = 0; begin < n; begin += kGroup) {
    float largest = kE2m1Max * 0x1p-126f;
    for (int64_t i = begin; i < begin + kGroup; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float scale = exp2_int(std::max(-126, ceil_log2(largest * (1.0f / kE2m1Max))));
    for (int64_t i = begin; i < begin + kGroup; ++i) {
      x[i] = round_e2m1(std::clamp(x[i] / scale, -kE2m1Max, kE2m1Max)) * scale;
    }
  }
}

}  // namespace tandem::reference
