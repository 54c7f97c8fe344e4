#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace tandem::cpu::neon {

/// See lanes_portable.h. Lanes 4i ... 4i + 3 in v[i].
struct Lanes {
  float32x4_t v[4];

  template <class Fn>
  static Lanes each(const Fn& fn) {
    return {{fn(0), fn(1), fn(2), fn(3)}};
  }
  static Lanes set1(float x) {
    return each([&](int) { return vdupq_n_f32(x); });
  }
  static Lanes zero() { return set1(0.0f); }
  static Lanes load(const float* x) {
    return each([&](int i) { return vld1q_f32(x + 4 * i); });
  }
  static Lanes load_part(const float* x, int64_t n) {
    float padded[16] = {};
    for (int64_t i = 0; i < n; ++i) padded[i] = x[i];
    return load(padded);
  }
  static Lanes load_f16(const void* x) {
    const auto* bits = static_cast<const uint16_t*>(x);
    return each([&](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(bits + 4 * i))); });
  }
  static Lanes load_bf16(const void* x) {
    const auto* bits = static_cast<const uint16_t*>(x);
    return each(
        [&](int i) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(bits + 4 * i), 16)); });
  }
  void store(float* x) const {
    for (int i = 0; i < 4; ++i) vst1q_f32(x + 4 * i, v[i]);
  }
  void store_part(float* x, int64_t n) const {
    float padded[16];
    store(padded);
    for (int64_t i = 0; i < n; ++i) x[i] = padded[i];
  }

  static Lanes fma(Lanes a, Lanes b, Lanes c) {
    return each([&](int i) { return vfmaq_f32(c.v[i], a.v[i], b.v[i]); });
  }
  friend Lanes operator+(Lanes a, Lanes b) {
    return each([&](int i) { return vaddq_f32(a.v[i], b.v[i]); });
  }
  friend Lanes operator-(Lanes a, Lanes b) {
    return each([&](int i) { return vsubq_f32(a.v[i], b.v[i]); });
  }
  friend Lanes operator*(Lanes a, Lanes b) {
    return each([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
  }
  friend Lanes operator/(Lanes a, Lanes b) {
    return each([&](int i) { return vdivq_f32(a.v[i], b.v[i]); });
  }
  static Lanes max(Lanes a, Lanes b) {
    return each([&](int i) { return vmaxq_f32(a.v[i], b.v[i]); });
  }
  static Lanes min(Lanes a, Lanes b) {
    return each([&](int i) { return vminq_f32(a.v[i], b.v[i]); });
  }
  static Lanes abs(Lanes a) {
    return each([&](int i) { return vabsq_f32(a.v[i]); });
  }
  static Lanes round(Lanes a) {
    return each([&](int i) { return vrndnq_f32(a.v[i]); });
  }
  static Lanes exp2_int(Lanes n) {
    return each([&](int i) {
      const int32x4_t biased = vaddq_s32(vcvtnq_s32_f32(n.v[i]), vdupq_n_s32(127));
      return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
    });
  }
  static Lanes select_ge(Lanes x, float limit, Lanes a, Lanes b) {
    return each(
        [&](int i) { return vbslq_f32(vcgeq_f32(x.v[i], vdupq_n_f32(limit)), a.v[i], b.v[i]); });
  }
  float sum() const {
    const float32x4_t four = vaddq_f32(vaddq_f32(v[0], v[2]), vaddq_f32(v[1], v[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  static Lanes sums(const Lanes* x) {
    float out[16];
    for (int i = 0; i < 16; ++i) out[i] = x[i].sum();
    return load(out);
  }
  float largest() const {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(v[0], v[1]), vmaxq_f32(v[2], v[3])));
  }
  static void store_int8(Lanes a, int8_t* out) {
    const int16x8_t low =
        vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(a.v[0])), vqmovn_s32(vcvtnq_s32_f32(a.v[1])));
    const int16x8_t high =
        vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(a.v[2])), vqmovn_s32(vcvtnq_s32_f32(a.v[3])));
    vst1q_s8(out, vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)));
  }
  static int32_t sum_int8(const int8_t* q) { return vaddlvq_s8(vld1q_s8(q)); }
};

inline constexpr int kTileRows = 2;
inline constexpr int kTileOutputs = 2;

}  // namespace tandem::cpu::neon
