#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tandem::cpu::avx512 {

/// See lanes_portable.h.
struct Lanes {
  __m512 v;

  static Lanes set1(float x) { return {_mm512_set1_ps(x)}; }
  static Lanes zero() { return {_mm512_setzero_ps()}; }
  static Lanes load(const float* x) { return {_mm512_loadu_ps(x)}; }
  static __mmask16 part(int64_t n) { return static_cast<__mmask16>((1U << n) - 1U); }
  static Lanes load_part(const float* x, int64_t n) { return {_mm512_maskz_loadu_ps(part(n), x)}; }
  static Lanes load_f16(const void* x) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(x)))};
  }
  static Lanes load_bf16(const void* x) {
    const __m256i bits = _mm256_loadu_si256(static_cast<const __m256i*>(x));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
  }
  void store(float* x) const { _mm512_storeu_ps(x, v); }
  void store_part(float* x, int64_t n) const { _mm512_mask_storeu_ps(x, part(n), v); }

  static Lanes fma(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Lanes operator-(Lanes a, Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Lanes operator/(Lanes a, Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
  static Lanes max(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
  static Lanes min(Lanes a, Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
  static Lanes abs(Lanes a) { return {_mm512_abs_ps(a.v)}; }
  static Lanes round(Lanes a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  static Lanes exp2_int(Lanes n) {
    const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
  }
  static Lanes select_ge(Lanes x, float limit, Lanes a, Lanes b) {
    const __mmask16 reaches = _mm512_cmp_ps_mask(x.v, _mm512_set1_ps(limit), _CMP_GE_OQ);
    return {_mm512_mask_mov_ps(b.v, reaches, a.v)};
  }
  float sum() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static Lanes sums(const Lanes* x) {
    // Each stage halves the lanes of every vector and puts two vectors' halves into one.
    __m512 eights[8];
    for (int i = 0; i < 8; ++i) {
      const __m512 a = x[2 * i].v;
      const __m512 b = x[2 * i + 1].v;
      eights[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    }
    __m512 fours[4];
    for (int i = 0; i < 4; ++i) {
      const __m512 a = eights[2 * i];
      const __m512 b = eights[2 * i + 1];
      fours[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    }
    __m512 twos[2];
    for (int i = 0; i < 2; ++i) {
      const __m512d a = _mm512_castps_pd(fours[2 * i]);
      const __m512d b = _mm512_castps_pd(fours[2 * i + 1]);
      twos[i] = _mm512_add_ps(
          _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    const __m512 ones = _mm512_add_ps(
        _mm512_shuffle_ps(twos[0], twos[1], 0x88), _mm512_shuffle_ps(twos[0], twos[1], 0xdd));
    // 128-bit part p holds the sums of x[p], x[4 + p], x[8 + p], x[12 + p].
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return {_mm512_permutexvar_ps(order, ones)};
  }
  float largest() const {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  static void store_int8(Lanes a, int8_t* out) {
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(out), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(a.v)));
  }
  static int32_t sum_int8(const int8_t* q) {
    // Differences from -128 are unsigned, which one instruction adds up by eights.
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
    const __m128i eights =
        _mm_sad_epu8(_mm_xor_si128(bytes, _mm_set1_epi8(-128)), _mm_setzero_si128());
    return _mm_cvtsi128_si32(eights) + _mm_extract_epi16(eights, 4) - 16 * 128;
  }
};

inline constexpr int kTileRows = 4;
inline constexpr int kTileOutputs = 4;

}  // namespace tandem::cpu::avx512
