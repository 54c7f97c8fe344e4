#pragma once

// Inner products of one block with 256 activations, 64 values at a time. Each gives eight lanes
// that add up to the product. Included by kernels_avx512.cc only.

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/formats/blocks.h"
#include "model/formats/iq2_grid.h"

namespace tandem::cpu::avx512 {

/// The codes of the grid rows, arranged for a shift of whole words: bits 2j+1..2j of the low byte
/// are the code of value 2j, those of the high byte of value 2j + 1.
consteval std::array<uint16_t, 256> iq2_word_table() {
  std::array<uint16_t, 256> out{};
  for (size_t row = 0; row < out.size(); ++row) {
    unsigned word = 0;
    for (unsigned value = 0; value < 8; ++value) {
      const unsigned code = (kIq2XxsWords[row] >> (2 * value)) & 3U;
      word |= code << (8 * (value % 2) + value / 2 * 2);
    }
    out[row] = static_cast<uint16_t>(word);
  }
  return out;
}

struct Wide {
  static __m512i halves(const int8_t* low, const int8_t* high) {
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(low))),
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high)), 1);
  }

  /// Word `index[l]` of 128-bit lane l in the low word of each of its 32-bit lanes.
  static __m512i spread(__m512i words, int first, int second, int third, int fourth) {
    const auto control = [](int index) {
      return _mm_set1_epi32(
          static_cast<int32_t>(0x80800000U | unsigned(2 * index) | unsigned(2 * index + 1) << 8));
    };
    __m512i all = _mm512_castsi128_si512(control(first));
    all = _mm512_inserti32x4(all, control(second), 1);
    all = _mm512_inserti32x4(all, control(third), 2);
    all = _mm512_inserti32x4(all, control(fourth), 3);
    return _mm512_shuffle_epi8(words, all);
  }

  /// sum + the dot product of 64 codes with q, each 32-bit lane of it times its scale.
  static __m512i add_scaled(__m512i sum, __m512i codes, __m512i q, __m512i scales) {
    return _mm512_dpwssd_epi32(sum, _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes, q), scales);
  }

  static __m256i folded(__m512i sum) {
    return _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
  }

  /// Two adjacent blocks of MXFP4 against 64 activations, codes with the zero point 16: the lower
  /// four lanes add up to the first block's product, the upper four to the second's.
  static __m256i dot_mxfp4_pair(const std::byte* blocks, const int8_t* x) {
    const auto load = [&](size_t block) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(
          blocks + block * sizeof(BlockMXFP4) + offsetof(BlockMXFP4, q)));
    };
    const __m256i packed = _mm256_inserti128_si256(_mm256_castsi128_si256(load(0)), load(1), 1);
    const __m256i low = _mm256_set1_epi8(15);
    const __m512i nibbles = _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_and_si256(packed, low)),
        _mm256_and_si256(_mm256_srli_epi16(packed, 4), low), 1);
    const __m512i values = _mm512_broadcast_i32x4(
        _mm_setr_epi8(16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4));
    // The activations of the lower nibbles of both blocks first.
    const __m512i q = _mm512_loadu_si512(x);
    const __m512i sum = _mm512_dpbusd_epi32(
        _mm512_setzero_si512(), _mm512_shuffle_epi8(values, nibbles),
        _mm512_shuffle_i64x2(q, q, 0xd8));
    return folded(sum);
  }

  /// scales: one word for each group of 32.
  static __m256i dot_q4k(const std::byte* block, const int8_t* x, __m128i scales) {
    const __m512i low = _mm512_set1_epi8(15);
    const __m512i words = _mm512_broadcast_i32x4(scales);
    __m512i sum = _mm512_setzero_si512();
    for (int half = 0; half < 2; ++half) {
      // Groups 0 and 2 are in the lower nibbles of 64 bytes, groups 1 and 3 in the upper ones.
      const __m512i packed = _mm512_loadu_si512(block + offsetof(BlockQ4K, q) + 64 * half);
      const int8_t* q = x + 128 * half;
      const int g = 4 * half;
      sum = add_scaled(
          sum, _mm512_and_si512(packed, low), halves(q, q + 64), spread(words, g, g, g + 2, g + 2));
      sum = add_scaled(
          sum, _mm512_and_si512(_mm512_srli_epi16(packed, 4), low), halves(q + 32, q + 96),
          spread(words, g + 1, g + 1, g + 3, g + 3));
    }
    return folded(sum);
  }

  /// scales: one word for each group of 16.
  static __m256i dot_q2k(const std::byte* block, const int8_t* x, __m256i scales) {
    const __m512i three = _mm512_set1_epi8(3);
    const __m512i both = _mm512_castsi256_si512(scales);
    const __m512i words = _mm512_shuffle_i64x2(both, both, 0x50);  // each half twice
    const __m512i packed = _mm512_loadu_si512(block + offsetof(BlockQ2K, q));
    const __m512i planes[4] = {
        packed, _mm512_srli_epi16(packed, 2), _mm512_srli_epi16(packed, 4),
        _mm512_srli_epi16(packed, 6)};
    __m512i sum = _mm512_setzero_si512();
    for (int p = 0; p < 4; ++p) {  // values 32 p ... of both halves of the block
      sum = add_scaled(
          sum, _mm512_and_si512(planes[p], three), halves(x + 32 * p, x + 128 + 32 * p),
          spread(words, 2 * p, 2 * p + 1, 2 * p, 2 * p + 1));
    }
    return folded(sum);
  }

  alignas(64) static constexpr std::array<uint16_t, 256> kTable = iq2_word_table();

  static __m512i table(int part) { return _mm512_load_si512(kTable.data() + 32 * part); }

  /// The codes of the 32 grid rows of a block, in their order.
  static __m512i iq2_codes(const std::byte* block) {
    // Each 128-bit lane holds two groups: four indices, then four bytes of signs and scale.
    const __m512i groups = _mm512_loadu_si512(block + offsetof(BlockIQ2XXS, q));
    const __m512i places = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, -128, 1, -128, 2, -128, 3, -128, 8, -128, 9, -128, 10, -128, 11, -128));
    const __m512i indices = _mm512_shuffle_epi8(groups, places);
    const auto look_up = [&](int part) {  // of the 64 rows from 32 * part on
      return _mm512_permutex2var_epi16(table(part), indices, table(part + 1));
    };
    const __mmask32 odd_quarter = _mm512_test_epi16_mask(indices, _mm512_set1_epi16(64));
    const __mmask32 upper_half = _mm512_test_epi16_mask(indices, _mm512_set1_epi16(128));
    const __m512i lower = _mm512_mask_mov_epi16(look_up(0), odd_quarter, look_up(2));
    const __m512i upper = _mm512_mask_mov_epi16(look_up(4), odd_quarter, look_up(6));
    return _mm512_mask_mov_epi16(lower, upper_half, upper);
  }

  /// Bit i of signs[g] is set if value i of group g is negative; scales[g] multiplies the group.
  static __m256i dot_iq2(
      const std::byte* block, const int8_t* x, const uint32_t* signs, const int32_t* scales) {
    const __m512i words = iq2_codes(block);
    const __m512i shifts = _mm512_set1_epi64(0x0006000400020000);
    const __m512i magnitudes =
        _mm512_broadcast_i32x4(_mm_setr_epi8(8, 25, 43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    const __m512i scale_lanes =
        _mm512_castsi256_si512(_mm256_load_si256(reinterpret_cast<const __m256i*>(scales)));
    __m512i sum = _mm512_setzero_si512();
    for (int pair = 0; pair < 4; ++pair) {  // of groups: 64 values
      // Each of eight words four times, shifted until the value's code is at the end of its byte.
      const __m512i first = _mm512_set1_epi16(static_cast<int16_t>(8 * pair));
      const __m512i spread =
          _mm512_permutexvar_epi16(_mm512_add_epi16(first, each_four_times()), words);
      const __m512i code = _mm512_and_si512(_mm512_srlv_epi16(spread, shifts), _mm512_set1_epi8(3));
      const __m512i magnitude = _mm512_shuffle_epi8(magnitudes, code);
      uint64_t negative;
      __builtin_memcpy(&negative, signs + 2 * pair, sizeof(negative));
      const __m512i q = _mm512_loadu_si512(x + 64 * pair);
      const __m512i signed_q = _mm512_mask_sub_epi8(q, negative, _mm512_setzero_si512(), q);
      const __m512i lanes = _mm512_add_epi32(_mm512_set1_epi32(2 * pair), each_eight_times());
      sum = add_scaled(sum, magnitude, signed_q, _mm512_permutexvar_epi32(lanes, scale_lanes));
    }
    return folded(sum);
  }

  static __m512i each_four_times() {
    return _mm512_setr_epi64(
        0, 0x0001000100010001, 0x0002000200020002, 0x0003000300030003, 0x0004000400040004,
        0x0005000500050005, 0x0006000600060006, 0x0007000700070007);
  }
  static __m512i each_eight_times() {
    return _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi32(1), 1);
  }
};

}  // namespace tandem::cpu::avx512
