#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "model/formats/blocks.h"

namespace tandem::cpu::portable {

/// Sixteen float32 values: the unit of all float arithmetic of the fast path. Each instruction set
/// has a type with these members, and each member gives the same bits everywhere. fma rounds once.
struct Lanes {
  float v[16];

  static Lanes set1(float x) {
    Lanes out;
    for (float& lane : out.v) lane = x;
    return out;
  }
  static Lanes zero() { return set1(0.0f); }
  static Lanes load(const float* x) {
    Lanes out;
    std::memcpy(out.v, x, sizeof(out.v));
    return out;
  }
  /// n values, 0 <= n < 16; the rest zero.
  static Lanes load_part(const float* x, int64_t n) {
    Lanes out = zero();
    std::memcpy(out.v, x, static_cast<size_t>(n) * sizeof(float));
    return out;
  }
  static Lanes load_f16(const void* x) {
    uint16_t bits[16];
    std::memcpy(bits, x, sizeof(bits));
    Lanes out;
    for (int i = 0; i < 16; ++i) out.v[i] = f16_to_f32(bits[i]);
    return out;
  }
  static Lanes load_bf16(const void* x) {
    uint16_t bits[16];
    std::memcpy(bits, x, sizeof(bits));
    Lanes out;
    for (int i = 0; i < 16; ++i) out.v[i] = bf16_to_f32(bits[i]);
    return out;
  }
  void store(float* x) const { std::memcpy(x, v, sizeof(v)); }
  void store_part(float* x, int64_t n) const {
    std::memcpy(x, v, static_cast<size_t>(n) * sizeof(float));
  }

  /// a * b + c, rounded once.
  static Lanes fma(Lanes a, Lanes b, Lanes c) {
    for (int i = 0; i < 16; ++i) c.v[i] = std::fma(a.v[i], b.v[i], c.v[i]);
    return c;
  }
  friend Lanes operator+(Lanes a, Lanes b) {
    for (int i = 0; i < 16; ++i) a.v[i] += b.v[i];
    return a;
  }
  friend Lanes operator-(Lanes a, Lanes b) {
    for (int i = 0; i < 16; ++i) a.v[i] -= b.v[i];
    return a;
  }
  friend Lanes operator*(Lanes a, Lanes b) {
    for (int i = 0; i < 16; ++i) a.v[i] *= b.v[i];
    return a;
  }
  friend Lanes operator/(Lanes a, Lanes b) {
    for (int i = 0; i < 16; ++i) a.v[i] /= b.v[i];
    return a;
  }
  /// Of a NaN and a number either may come out.
  static Lanes max(Lanes a, Lanes b) {
    for (int i = 0; i < 16; ++i) a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return a;
  }
  static Lanes min(Lanes a, Lanes b) {
    for (int i = 0; i < 16; ++i) a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return a;
  }
  static Lanes abs(Lanes a) {
    for (float& lane : a.v) lane = std::fabs(lane);
    return a;
  }
  /// To the nearest integer, ties to even.
  static Lanes round(Lanes a) {
    for (float& lane : a.v) lane = std::nearbyint(lane);
    return a;
  }
  /// 2^n. Limits: n an integer, -126 <= n <= 127.
  static Lanes exp2_int(Lanes n) {
    for (float& lane : n.v) {
      lane = std::bit_cast<float>(static_cast<uint32_t>(static_cast<int32_t>(lane) + 127) << 23);
    }
    return n;
  }
  /// a where x >= limit, else b.
  static Lanes select_ge(Lanes x, float limit, Lanes a, Lanes b) {
    for (int i = 0; i < 16; ++i) b.v[i] = x.v[i] >= limit ? a.v[i] : b.v[i];
    return b;
  }
  /// Pairwise from the top half down: lanes i and i + 8, then i + 4, i + 2, i + 1.
  float sum() const {
    float sums[16];
    std::memcpy(sums, v, sizeof(v));
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    return sums[0];
  }
  /// Lane i is x[i].sum().
  static Lanes sums(const Lanes* x) {
    Lanes out;
    for (int i = 0; i < 16; ++i) out.v[i] = x[i].sum();
    return out;
  }
  float largest() const {
    float out = v[0];
    for (const float lane : v) out = lane > out ? lane : out;
    return out;
  }
  /// Nearest integers, ties to even. Limits: |a| <= 127.
  static void store_int8(Lanes a, int8_t* out) {
    for (int i = 0; i < 16; ++i) out[i] = static_cast<int8_t>(std::nearbyint(a.v[i]));
  }
  /// The sum of 16 values.
  static int32_t sum_int8(const int8_t* q) {
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += q[i];
    return sum;
  }
};

/// Rows and outputs that a float product keeps in registers together.
inline constexpr int kTileRows = 2;
inline constexpr int kTileOutputs = 2;

}  // namespace tandem::cpu::portable
