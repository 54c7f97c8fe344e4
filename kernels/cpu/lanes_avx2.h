#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tandem::cpu::avx2 {

/// See lanes_portable.h. Lanes 0-7 in a, 8-15 in b.
struct Lanes {
  __m256 a, b;

  static Lanes set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Lanes zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Lanes load(const float* x) { return {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)}; }
  static Lanes load_part(const float* x, int64_t n) {
    float padded[16] = {};
    for (int64_t i = 0; i < n; ++i) padded[i] = x[i];
    return load(padded);
  }
  static Lanes load_f16(const void* x) {
    const auto* bits = static_cast<const __m128i*>(x);
    return {_mm256_cvtph_ps(_mm_loadu_si128(bits)), _mm256_cvtph_ps(_mm_loadu_si128(bits + 1))};
  }
  static __m256 widen_bf16(const __m128i* bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(bits)), 16));
  }
  static Lanes load_bf16(const void* x) {
    const auto* bits = static_cast<const __m128i*>(x);
    return {widen_bf16(bits), widen_bf16(bits + 1)};
  }
  void store(float* x) const {
    _mm256_storeu_ps(x, a);
    _mm256_storeu_ps(x + 8, b);
  }
  void store_part(float* x, int64_t n) const {
    float padded[16];
    store(padded);
    for (int64_t i = 0; i < n; ++i) x[i] = padded[i];
  }

  static Lanes fma(Lanes x, Lanes y, Lanes z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  friend Lanes operator+(Lanes x, Lanes y) {
    return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
  }
  friend Lanes operator-(Lanes x, Lanes y) {
    return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
  }
  friend Lanes operator*(Lanes x, Lanes y) {
    return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
  }
  friend Lanes operator/(Lanes x, Lanes y) {
    return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
  }
  static Lanes max(Lanes x, Lanes y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static Lanes min(Lanes x, Lanes y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  static Lanes abs(Lanes x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
  }
  static Lanes round(Lanes x) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(x.a, kMode), _mm256_round_ps(x.b, kMode)};
  }
  static __m256 exp2_int(__m256 n) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  static Lanes exp2_int(Lanes n) { return {exp2_int(n.a), exp2_int(n.b)}; }
  static Lanes select_ge(Lanes x, float limit, Lanes y, Lanes z) {
    const __m256 least = _mm256_set1_ps(limit);
    return {
        _mm256_blendv_ps(z.a, y.a, _mm256_cmp_ps(x.a, least, _CMP_GE_OQ)),
        _mm256_blendv_ps(z.b, y.b, _mm256_cmp_ps(x.b, least, _CMP_GE_OQ))};
  }
  float sum() const {
    const __m256 eight = _mm256_add_ps(a, b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static Lanes sums(const Lanes* x) {
    float out[16];
    for (int i = 0; i < 16; ++i) out[i] = x[i].sum();
    return load(out);
  }
  float largest() const {
    const __m256 eight = _mm256_max_ps(a, b);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  static void store_int8(Lanes x, int8_t* out) {
    const __m256i a = _mm256_cvtps_epi32(x.a);
    const __m256i b = _mm256_cvtps_epi32(x.b);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    const __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
  }
  static int32_t sum_int8(const int8_t* q) {
    // Differences from -128 are unsigned, which one instruction adds up by eights.
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
    const __m128i eights =
        _mm_sad_epu8(_mm_xor_si128(bytes, _mm_set1_epi8(-128)), _mm_setzero_si128());
    return _mm_cvtsi128_si32(eights) + _mm_extract_epi16(eights, 4) - 16 * 128;
  }
};

inline constexpr int kTileRows = 2;
inline constexpr int kTileOutputs = 3;

}  // namespace tandem::cpu::avx2
