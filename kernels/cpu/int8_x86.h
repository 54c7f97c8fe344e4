#pragma once

// The int8 matrix-vector products of x86, once for AVX2 and AVX-512: templates over `P`, which has
// the few instructions that differ. Included by the kernels_<isa>.cc files only; see
// float_kernels.h for why nothing here is shared between them.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/int8_panel.h"
#include "model/formats/blocks.h"
#include "model/formats/iq2_grid.h"

namespace tandem::cpu {

template <class P>
struct Int8X86 {
  static constexpr int kRows = 8;  // weight rows that go through one activation block together

  static __m256i load(const void* bytes) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(bytes));
  }

  template <class T>
  static T read(const void* bytes) {
    T out;
    __builtin_memcpy(&out, bytes, sizeof(out));
    return out;
  }

  /// Lane r is the sum of the lanes of v[r].
  static __m256i sums(const __m256i* v) {
    const __m256i a =
        _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i b =
        _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(
        _mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
  }

  /// The f16 values at `offset` of eight rows' blocks.
  static __m256 gather_f16(const std::byte* const* rows, int64_t offset) {
    __m128i bits = _mm_setzero_si128();
    bits = _mm_insert_epi16(bits, read<uint16_t>(rows[0] + offset), 0);
    bits = _mm_insert_epi16(bits, read<uint16_t>(rows[1] + offset), 1);
    bits = _mm_insert_epi16(bits, read<uint16_t>(rows[2] + offset), 2);
    bits = _mm_insert_epi16(bits, read<uint16_t>(rows[3] + offset), 3);
    bits = _mm_insert_epi16(bits, read<uint16_t>(rows[4] + offset), 4);
    bits = _mm_insert_epi16(bits, read<uint16_t>(rows[5] + offset), 5);
    bits = _mm_insert_epi16(bits, read<uint16_t>(rows[6] + offset), 6);
    bits = _mm_insert_epi16(bits, read<uint16_t>(rows[7] + offset), 7);
    return _mm256_cvtph_ps(bits);
  }

  struct Q8_0 {
    static constexpr int kBytes = sizeof(BlockQ8_0);
    static constexpr int kZero = P::kQ8Zero;
    static constexpr bool kInPairs = false;
    static __m256i dot(const std::byte* block, __m256i x) {
      return P::dot_q8(load(block + offsetof(BlockQ8_0, q)), x);
    }
    static __m256 scales(const std::byte* const* rows, int64_t offset) {
      return gather_f16(rows, offset);
    }
    static __m256i codes(const std::byte* block) {
      const __m256i values = load(block + offsetof(BlockQ8_0, q));
      return kZero == 0 ? values : _mm256_xor_si256(values, _mm256_set1_epi8(-128));
    }
  };

  struct MXFP4 {
    static constexpr int kBytes = sizeof(BlockMXFP4);
    static constexpr int kZero = 16;
    static constexpr bool kInPairs = true;
    static __m256i dot(const std::byte* block, __m256i x) { return P::dot(codes(block), x); }
    static __m256i codes(const std::byte* block) {
      const __m128i packed =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + offsetof(BlockMXFP4, q)));
      const __m128i low = _mm_set1_epi8(15);
      const __m256i nibbles = _mm256_inserti128_si256(
          _mm256_castsi128_si256(_mm_and_si128(packed, low)),
          _mm_and_si128(_mm_srli_epi16(packed, 4), low), 1);
      const __m256i values = _mm256_broadcastsi128_si256(
          _mm_setr_epi8(16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4));
      return _mm256_shuffle_epi8(values, nibbles);
    }
    static __m256 scales(const std::byte* const* rows, int64_t offset) {
      // 2^(e - 127) / 2; the exponent 0 stands for the subnormal 2^-127.
      __m256i e = _mm256_setr_epi32(
          read<uint8_t>(rows[0] + offset), read<uint8_t>(rows[1] + offset),
          read<uint8_t>(rows[2] + offset), read<uint8_t>(rows[3] + offset),
          read<uint8_t>(rows[4] + offset), read<uint8_t>(rows[5] + offset),
          read<uint8_t>(rows[6] + offset), read<uint8_t>(rows[7] + offset));
      const __m256i is_zero = _mm256_cmpeq_epi32(e, _mm256_setzero_si256());
      e = _mm256_or_si256(
          _mm256_slli_epi32(e, 23), _mm256_and_si256(is_zero, _mm256_set1_epi32(0x00400000)));
      return _mm256_mul_ps(_mm256_castsi256_ps(e), _mm256_set1_ps(0.5f));
    }
  };

  /// Asks for the rows after the next eight. Eight rows are one range of memory that is read block
  /// by block in eight places at once, which no hardware prefetcher follows; this walks the range
  /// of two groups ahead from its start to its end meanwhile (benchmarks/kernels: from 18 to 46
  /// GB/s of 54 for Q8_0 rows of 1,024 values on two cores of a Zen 4).
  template <int kBytes>
  static void prefetch_ahead(const std::byte* const* rows, int64_t b) {
    constexpr int64_t kLine = 64;
    const int64_t row_bytes = rows[1] - rows[0];
    const std::byte* ahead = rows[0] + 2 * kRows * row_bytes + b * kRows * kBytes;
    for (int64_t i = 0; i < kRows * kBytes; i += kLine) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead + i), _MM_HINT_T1);
    }
  }

  /// The sums of the lower and of the upper four lanes: lane r of sums[i] is those of v[r].
  static void sums_of_halves(const __m256i* v, __m256i* sums) {
    const __m256i a =
        _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    const __m256i b =
        _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    sums[0] = _mm256_permute2x128_si256(a, b, 0x20);
    sums[1] = _mm256_permute2x128_si256(a, b, 0x31);
  }

  /// sum + the eight rows' products with block b, of codes with the zero point of T.
  template <class T>
  static __m256 add_block32(
      const std::byte* const* rows, const Int8Rows& x, int64_t b, __m256i dot, __m256 sum) {
    if constexpr (T::kZero != 0) {
      const int32_t bias = T::kZero * (int32_t{x.sums[2 * b]} + x.sums[2 * b + 1]);
      dot = _mm256_sub_epi32(dot, _mm256_set1_epi32(bias));
    }
    const __m256 scale = _mm256_mul_ps(T::scales(rows, b * T::kBytes), _mm256_set1_ps(x.scale[b]));
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scale, sum);
  }

  template <class T>
  static void gemv32(const std::byte* const* rows, const Int8Rows& x, float* out) {
    __m256 sum = _mm256_setzero_ps();
    int64_t b = 0;
    if constexpr (P::kWide && T::kInPairs) {
      for (; b + 2 <= x.k / 32; b += 2) {
        prefetch_ahead<T::kBytes>(rows, b);
        prefetch_ahead<T::kBytes>(rows, b + 1);
        __m256i halves[kRows];
        for (int r = 0; r < kRows; ++r) {
          halves[r] = P::dot_mxfp4_pair(rows[r] + b * T::kBytes, x.q + 32 * b);
        }
        __m256i dots[2];
        sums_of_halves(halves, dots);
        for (int i = 0; i < 2; ++i) sum = add_block32<T>(rows, x, b + i, dots[i], sum);
      }
    }
    for (; b < x.k / 32; ++b) {
      const int64_t offset = b * T::kBytes;
      prefetch_ahead<T::kBytes>(rows, b);
      const __m256i xb = load(x.q + 32 * b);
      __m256i dots[kRows];
      for (int r = 0; r < kRows; ++r) dots[r] = T::dot(rows[r] + offset, xb);
      sum = add_block32<T>(rows, x, b, sums(dots), sum);
    }
    _mm256_storeu_ps(out, sum);
  }

  /// What the 256-value types need of one activation block.
  struct Block256 {
    const int8_t* q;
    __m256i sums;       // 16 x i16
    __m256i factors;    // 8 x i32
    __m128i factors8;   // 8 x i16
    __m256i factors16;  // 16 x i16, each twice
    __m256i at(int chunk) const { return load(q + 32 * chunk); }
  };

  /// 16-bit word `low` or `high` of its half in the low word of every 32-bit lane.
  static __m256i spread(__m256i words, int low, int high) {
    const auto word = [](int index) {
      return static_cast<int32_t>(0x80800000U | unsigned(2 * index) | unsigned(2 * index + 1) << 8);
    };
    const __m256i control = _mm256_setr_epi32(
        word(low), word(low), word(low), word(low), word(high), word(high), word(high), word(high));
    return _mm256_shuffle_epi8(words, control);
  }

  struct Q4K {
    static constexpr int kBytes = sizeof(BlockQ4K);
    static constexpr bool kHasMins = true;
    static constexpr int kD = offsetof(BlockQ4K, d);
    static constexpr int kDmin = offsetof(BlockQ4K, dmin);
    static constexpr float kFactor = 1.0f;

    static void dot(const std::byte* block, const Block256& x, __m256i& dot, __m256i& min_dot) {
      uint64_t scales = 0;
      uint64_t mins = 0;
      unpack_scales(block, scales, mins);
      const __m128i scale_words = _mm_mullo_epi16(
          _mm_cvtepu8_epi16(_mm_cvtsi64_si128(static_cast<int64_t>(scales))), x.factors8);
      if constexpr (P::kWide) {
        dot = P::dot_q4k(block, x.q, scale_words);
      } else {
        dot = dot_groups(block, x, _mm256_broadcastsi128_si256(scale_words));
      }
      const __m128i min_bytes = _mm_cvtsi64_si128(static_cast<int64_t>(mins));
      min_dot =
          _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(min_bytes, min_bytes)), x.sums);
    }

    static __m256i dot_groups(const std::byte* block, const Block256& x, __m256i scales) {
      const __m256i low = _mm256_set1_epi8(15);
      __m256i sum = _mm256_setzero_si256();
      for (int pair = 0; pair < 4; ++pair) {
        const __m256i codes = load(block + offsetof(BlockQ4K, q) + 32 * pair);
        const __m256i even = P::dot(_mm256_and_si256(codes, low), x.at(2 * pair));
        const __m256i odd =
            P::dot(_mm256_and_si256(_mm256_srli_epi16(codes, 4), low), x.at(2 * pair + 1));
        sum = P::mac16(sum, even, spread(scales, 2 * pair, 2 * pair));
        sum = P::mac16(sum, odd, spread(scales, 2 * pair + 1, 2 * pair + 1));
      }
      return sum;
    }

    /// Eight scales and eight minima of six bits, a byte each.
    static void unpack_scales(const std::byte* block, uint64_t& scales, uint64_t& mins) {
      const std::byte* packed = block + offsetof(BlockQ4K, scales);
      const auto a = read<uint32_t>(packed);
      const auto b = read<uint32_t>(packed + 4);
      const auto c = read<uint32_t>(packed + 8);
      const uint32_t scales_high = (c & 0x0f0f0f0fU) | (((a >> 6) & 0x03030303U) << 4);
      const uint32_t mins_high = ((c >> 4) & 0x0f0f0f0fU) | (((b >> 6) & 0x03030303U) << 4);
      scales = (a & 0x3f3f3f3fU) | (uint64_t{scales_high} << 32);
      mins = (b & 0x3f3f3f3fU) | (uint64_t{mins_high} << 32);
    }
    static void codes(const std::byte* block, __m256i* out) {
      const __m256i low = _mm256_set1_epi8(15);
      for (int pair = 0; pair < 4; ++pair) {
        const __m256i packed = load(block + offsetof(BlockQ4K, q) + 32 * pair);
        out[2 * pair] = _mm256_and_si256(packed, low);
        out[2 * pair + 1] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), low);
      }
    }
    static void scales(const std::byte* block, int16_t* scale, int16_t* bias) {
      uint64_t scale_bytes = 0;
      uint64_t min_bytes = 0;
      unpack_scales(block, scale_bytes, min_bytes);
      for (int g = 0; g < 8; ++g) {
        scale[2 * g] = scale[2 * g + 1] = static_cast<int16_t>((scale_bytes >> (8 * g)) & 255U);
        bias[2 * g] = bias[2 * g + 1] = static_cast<int16_t>((min_bytes >> (8 * g)) & 255U);
      }
    }
  };

  struct Q2K {
    static constexpr int kBytes = sizeof(BlockQ2K);
    static constexpr bool kHasMins = true;
    static constexpr int kD = offsetof(BlockQ2K, d);
    static constexpr int kDmin = offsetof(BlockQ2K, dmin);
    static constexpr float kFactor = 1.0f;

    static void dot(const std::byte* block, const Block256& x, __m256i& dot, __m256i& min_dot) {
      const __m128i packed =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + offsetof(BlockQ2K, scales)));
      const __m128i low = _mm_set1_epi8(15);
      const __m256i scale_words =
          _mm256_mullo_epi16(_mm256_cvtepu8_epi16(_mm_and_si128(packed, low)), x.factors16);
      const __m256i min_words = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(packed, 4), low));
      if constexpr (P::kWide) {
        dot = P::dot_q2k(block, x.q, scale_words);
      } else {
        dot = dot_groups(block, x, scale_words);
      }
      min_dot = _mm256_madd_epi16(min_words, x.sums);
    }

    static __m256i dot_groups(const std::byte* block, const Block256& x, __m256i scales) {
      const __m256i halves[2] = {
          _mm256_permute2x128_si256(scales, scales, 0x00),
          _mm256_permute2x128_si256(scales, scales, 0x11)};
      const __m256i three = _mm256_set1_epi8(3);
      __m256i sum = _mm256_setzero_si256();
      for (int half = 0; half < 2; ++half) {
        const __m256i codes = load(block + offsetof(BlockQ2K, q) + 32 * half);
        const __m256i planes[4] = {
            codes, _mm256_srli_epi16(codes, 2), _mm256_srli_epi16(codes, 4),
            _mm256_srli_epi16(codes, 6)};
        for (int p = 0; p < 4; ++p) {
          const __m256i partial = P::dot(_mm256_and_si256(planes[p], three), x.at(4 * half + p));
          sum = P::mac16(sum, partial, spread(halves[half], 2 * p, 2 * p + 1));
        }
      }
      return sum;
    }

    static void codes(const std::byte* block, __m256i* out) {
      const __m256i three = _mm256_set1_epi8(3);
      for (int half = 0; half < 2; ++half) {
        const __m256i packed = load(block + offsetof(BlockQ2K, q) + 32 * half);
        out[4 * half] = _mm256_and_si256(packed, three);
        out[4 * half + 1] = _mm256_and_si256(_mm256_srli_epi16(packed, 2), three);
        out[4 * half + 2] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), three);
        out[4 * half + 3] = _mm256_and_si256(_mm256_srli_epi16(packed, 6), three);
      }
    }
    static void scales(const std::byte* block, int16_t* scale, int16_t* bias) {
      for (int g = 0; g < 16; ++g) {
        const auto packed = read<uint8_t>(block + offsetof(BlockQ2K, scales) + g);
        scale[g] = static_cast<int16_t>(packed & 15);
        bias[g] = static_cast<int16_t>(packed >> 4);
      }
    }
  };

  struct Q6K {
    static constexpr int kBytes = sizeof(BlockQ6K);
    static constexpr bool kHasMins = false;
    static constexpr int kD = offsetof(BlockQ6K, d);
    static constexpr int kDmin = 0;
    static constexpr float kFactor = 1.0f;

    static void dot(const std::byte* block, const Block256& x, __m256i& dot, __m256i&) {
      const __m256i scale_words = _mm256_cvtepi8_epi16(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + offsetof(BlockQ6K, scales))));
      const __m256i products = _mm256_mullo_epi16(scale_words, x.factors16);
      const __m256i halves[2] = {
          _mm256_permute2x128_si256(products, products, 0x00),
          _mm256_permute2x128_si256(products, products, 0x11)};
      __m256i chunks[8];
      codes(block, chunks);
      __m256i sum = _mm256_setzero_si256();
      for (int half = 0; half < 2; ++half) {
        for (int p = 0; p < 4; ++p) {
          const __m256i partial = P::dot(chunks[4 * half + p], x.at(4 * half + p));
          sum = P::mac16(sum, partial, spread(halves[half], 2 * p, 2 * p + 1));
        }
      }
      const __m256i bias = _mm256_slli_epi32(_mm256_madd_epi16(scale_words, x.sums), 5);
      dot = _mm256_sub_epi32(sum, bias);
    }

    static void codes(const std::byte* block, __m256i* out) {
      const __m256i low = _mm256_set1_epi8(15);
      const __m256i high_mask = _mm256_set1_epi8(0x30);
      for (int half = 0; half < 2; ++half) {
        const __m256i q0 = load(block + offsetof(BlockQ6K, q_low) + 64 * half);
        const __m256i q1 = load(block + offsetof(BlockQ6K, q_low) + 64 * half + 32);
        const __m256i high = load(block + offsetof(BlockQ6K, q_high) + 32 * half);
        const auto join = [&](__m256i low_bits, __m256i high_bits) {
          return _mm256_or_si256(
              _mm256_and_si256(low_bits, low), _mm256_and_si256(high_bits, high_mask));
        };
        out[4 * half] = join(q0, _mm256_slli_epi16(high, 4));
        out[4 * half + 1] = join(q1, _mm256_slli_epi16(high, 2));
        out[4 * half + 2] = join(_mm256_srli_epi16(q0, 4), high);
        out[4 * half + 3] = join(_mm256_srli_epi16(q1, 4), _mm256_srli_epi16(high, 2));
      }
    }
    static void scales(const std::byte* block, int16_t* scale, int16_t* bias) {
      for (int g = 0; g < 16; ++g) {
        scale[g] = read<int8_t>(block + offsetof(BlockQ6K, scales) + g);
        bias[g] = static_cast<int16_t>(32 * scale[g]);
      }
    }
  };

  struct IQ2XXS {
    static constexpr int kBytes = sizeof(BlockIQ2XXS);
    static constexpr bool kHasMins = false;
    static constexpr int kD = offsetof(BlockIQ2XXS, d);
    static constexpr int kDmin = 0;
    static constexpr float kFactor = 0.125f;

    static void dot(const std::byte* block, const Block256& x, __m256i& dot, __m256i&) {
      const Words words(block, x.factors);
      if constexpr (P::kWide) {
        dot = P::dot_iq2(block, x.q, words.signs, words.scales);
      } else {
        __m256i sum = _mm256_setzero_si256();
        for (int g = 0; g < 8; ++g) {
          const __m256i partial = P::dot(magnitudes(block, g), P::negate(x.at(g), words.signs[g]));
          sum = P::mac16(sum, partial, _mm256_set1_epi32(words.scales[g]));
        }
        dot = sum;
      }
    }

    /// Codes with the zero point 64.
    static void codes(const std::byte* block, __m256i* out) {
      const Words words(block, _mm256_set1_epi32(1));
      for (int g = 0; g < 8; ++g) {
        out[g] =
            _mm256_add_epi8(P::negate(magnitudes(block, g), words.signs[g]), _mm256_set1_epi8(64));
      }
    }
    static void scales(const std::byte* block, int16_t* scale, int16_t* bias) {
      const Words words(block, _mm256_set1_epi32(1));
      for (int g = 0; g < 8; ++g) {
        scale[2 * g] = scale[2 * g + 1] = static_cast<int16_t>(words.scales[g]);
        bias[2 * g] = bias[2 * g + 1] = static_cast<int16_t>(64 * words.scales[g]);
      }
    }

    /// What the second words of the eight groups say: bit i of signs[g] is set if value i of the
    /// group is negative, and scales[g] is the group's scale times its factor.
    struct Words {
      alignas(32) uint32_t signs[8];
      alignas(32) int32_t scales[8];

      Words(const std::byte* block, __m256i factors) {
        const __m256i low = load(block + offsetof(BlockIQ2XXS, q));
        const __m256i high = load(block + offsetof(BlockIQ2XXS, q) + 32);
        const __m256i b = _mm256_permute4x64_epi64(
            _mm256_castps_si256(
                _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), 0xdd)),
            0xd8);
        // Of each byte of signs seven bits are stored, bits 0, 7, 14 and 21 on: the upper two move
        // up by two to start at a word, then the odd ones by one.
        const __m256i pairs = _mm256_blend_epi16(b, _mm256_slli_epi32(b, 2), 0xaa);
        const __m256i sevens = _mm256_or_si256(
            _mm256_and_si256(pairs, _mm256_set1_epi16(0x007f)),
            _mm256_and_si256(_mm256_add_epi16(pairs, pairs), _mm256_set1_epi16(0x7f00)));
        // The eighth makes their number even.
        const __m256i nibble = _mm256_set1_epi8(15);
        const __m256i odd_nibbles = _mm256_broadcastsi128_si256(
            _mm_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
        const __m256i eighth = _mm256_xor_si256(
            _mm256_shuffle_epi8(odd_nibbles, _mm256_and_si256(sevens, nibble)),
            _mm256_shuffle_epi8(
                odd_nibbles, _mm256_and_si256(_mm256_srli_epi16(sevens, 4), nibble)));
        _mm256_store_si256(reinterpret_cast<__m256i*>(signs), _mm256_or_si256(sevens, eighth));
        // 2 * (b >> 28) + 1: the bit below those four is replaced by the 1.
        const __m256i odd = _mm256_or_si256(_mm256_srli_epi32(b, 27), _mm256_set1_epi32(1));
        _mm256_store_si256(reinterpret_cast<__m256i*>(scales), _mm256_madd_epi16(odd, factors));
      }
    };

    /// The four grid rows of a group.
    static __m256i magnitudes(const std::byte* block, int g) {
      const auto* grid = reinterpret_cast<const std::byte*>(&kIq2XxsGrid);
      const std::byte* indices = block + offsetof(BlockIQ2XXS, q) + 8 * g;
      const auto row = [&](int i) {
        return read<int64_t>(grid + 8 * size_t{read<uint8_t>(indices + i)});
      };
      return _mm256_setr_epi64x(row(0), row(1), row(2), row(3));
    }
  };

  template <class T>
  static void gemv256(const std::byte* const* rows, const Int8Rows& x, float* out) {
    __m256 sum = _mm256_setzero_ps();
    for (int64_t b = 0; b < x.k / 256; ++b) {
      const int64_t offset = b * T::kBytes;
      prefetch_ahead<T::kBytes>(rows, b);
      Block256 xb;
      xb.q = x.q + 256 * b;
      xb.sums = load(x.sums + 16 * b);
      xb.factors = load(x.factors + 8 * b);
      xb.factors8 = _mm_packs_epi32(
          _mm256_castsi256_si128(xb.factors), _mm256_extracti128_si256(xb.factors, 1));
      xb.factors16 = _mm256_or_si256(xb.factors, _mm256_slli_epi32(xb.factors, 16));
      __m256i dots[kRows];
      __m256i min_dots[kRows];
      for (int r = 0; r < kRows; ++r) T::dot(rows[r] + offset, xb, dots[r], min_dots[r]);
      const __m256 x_scale = _mm256_set1_ps(x.scale[b]);
      __m256 d = gather_f16(rows, offset + T::kD);
      if constexpr (T::kFactor != 1.0f) d = _mm256_mul_ps(d, _mm256_set1_ps(T::kFactor));
      sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums(dots)), _mm256_mul_ps(d, x_scale), sum);
      if constexpr (T::kHasMins) {
        const __m256 dmin = gather_f16(rows, offset + T::kDmin);
        sum =
            _mm256_fnmadd_ps(_mm256_cvtepi32_ps(sums(min_dots)), _mm256_mul_ps(dmin, x_scale), sum);
      }
    }
    _mm256_storeu_ps(out, sum);
  }

  /// Eight rows at a time; the last ones repeat the last row.
  template <class Fn>
  static void each_eight(
      const std::byte* rows, int64_t row_bytes, int64_t num_rows, float* out, const Fn& fn) {
    const std::byte* pointers[kRows];
    for (int64_t i = 0; i < num_rows; i += kRows) {
      const int64_t count = num_rows - i < kRows ? num_rows - i : kRows;
      for (int64_t r = 0; r < kRows; ++r) {
        pointers[r] = rows + (i + (r < count ? r : count - 1)) * row_bytes;
      }
      if (count == kRows) {
        fn(pointers, out + i);
      } else {
        float results[kRows];
        fn(pointers, results);
        for (int64_t r = 0; r < count; ++r) out[i + r] = results[r];
      }
    }
  }

  /// Puts 32 codes of eight rows into their places of a panel, from row `first` on.
  static void store_words(const __m256i* codes, int first, uint8_t (*out)[kPanelRows][4]) {
    __m256i pairs[8];
    for (int i = 0; i < 4; ++i) {
      pairs[2 * i] = _mm256_unpacklo_epi32(codes[2 * i], codes[2 * i + 1]);
      pairs[2 * i + 1] = _mm256_unpackhi_epi32(codes[2 * i], codes[2 * i + 1]);
    }
    __m256i quads[8];  // word j of each half, of rows 0-3 and of rows 4-7
    for (int i = 0; i < 2; ++i) {
      quads[4 * i] = _mm256_unpacklo_epi64(pairs[4 * i], pairs[4 * i + 2]);
      quads[4 * i + 1] = _mm256_unpackhi_epi64(pairs[4 * i], pairs[4 * i + 2]);
      quads[4 * i + 2] = _mm256_unpacklo_epi64(pairs[4 * i + 1], pairs[4 * i + 3]);
      quads[4 * i + 3] = _mm256_unpackhi_epi64(pairs[4 * i + 1], pairs[4 * i + 3]);
    }
    const auto store = [&](int word, __m256i words) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out[word][first]), words);
    };
    for (int j = 0; j < 4; ++j) {
      store(j, _mm256_permute2x128_si256(quads[j], quads[4 + j], 0x20));
      store(4 + j, _mm256_permute2x128_si256(quads[j], quads[4 + j], 0x31));
    }
  }

  template <class T>
  static void pack32(const std::byte* const* rows, int64_t k, int first, PanelBlock32* panel) {
    for (int64_t b = 0; b < k / 32; ++b) {
      __m256i codes[kRows];
      for (int r = 0; r < kRows; ++r) codes[r] = T::codes(rows[r] + b * T::kBytes);
      store_words(codes, first, panel[b].codes);
      _mm256_storeu_ps(panel[b].d + first, T::scales(rows, b * T::kBytes));
    }
  }

  template <class T, int kGroups>
  static void pack256(
      const std::byte* const* rows, int64_t k, int first, PanelBlock256<kGroups>* panel) {
    for (int64_t b = 0; b < k / 256; ++b) {
      const int64_t offset = b * T::kBytes;
      PanelBlock256<kGroups>& out = panel[b];
      __m256i codes[kRows][8];
      for (int r = 0; r < kRows; ++r) T::codes(rows[r] + offset, codes[r]);
      for (int chunk = 0; chunk < 8; ++chunk) {
        __m256i words[kRows];
        for (int r = 0; r < kRows; ++r) words[r] = codes[r][chunk];
        store_words(words, first, out.codes + 8 * chunk);
      }
      for (int r = 0; r < kRows; ++r) {
        int16_t scale[16];
        int16_t bias[16];
        T::scales(rows[r] + offset, scale, bias);
        for (int g = 0; g < kGroups; ++g) out.scales[g][first + r] = scale[g * (16 / kGroups)];
        for (int g = 0; g < 16; ++g) out.bias[g / 2][first + r][g % 2] = bias[g];
      }
      __m256 d = gather_f16(rows, offset + T::kD);
      if constexpr (T::kFactor != 1.0f) d = _mm256_mul_ps(d, _mm256_set1_ps(T::kFactor));
      _mm256_storeu_ps(out.d + first, d);
      _mm256_storeu_ps(out.dmin + first, T::kHasMins ? gather_f16(rows, offset + T::kDmin) : d);
    }
  }

  /// The pack entry of the table. Rows past num_rows repeat the last one; nobody stores their
  /// results.
  static void pack(
      DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, int64_t k,
      std::byte* panel) {
    auto* panel32 = reinterpret_cast<PanelBlock32*>(panel);
    auto* panel8 = reinterpret_cast<PanelBlock256<8>*>(panel);
    auto* panel16 = reinterpret_cast<PanelBlock256<16>*>(panel);
    for (int first = 0; first < kPanelRows; first += kRows) {
      const std::byte* pointers[kRows];
      for (int r = 0; r < kRows; ++r) {
        pointers[r] = rows + (first + r < num_rows ? first + r : num_rows - 1) * row_bytes;
      }
      switch (dtype) {
        case DType::kQ8_0: pack32<Q8_0>(pointers, k, first, panel32); break;
        case DType::kMXFP4: pack32<MXFP4>(pointers, k, first, panel32); break;
        case DType::kQ2_K: pack256<Q2K>(pointers, k, first, panel16); break;
        case DType::kQ4_K: pack256<Q4K>(pointers, k, first, panel8); break;
        case DType::kQ6_K: pack256<Q6K>(pointers, k, first, panel16); break;
        case DType::kIQ2_XXS: pack256<IQ2XXS>(pointers, k, first, panel8); break;
        default: break;
      }
    }
  }

  static void gemv(
      DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, const Int8Rows& x,
      float* out) {
    each_eight(rows, row_bytes, num_rows, out, [&](const std::byte* const* pointers, float* y) {
      switch (dtype) {
        case DType::kQ8_0: return gemv32<Q8_0>(pointers, x, y);
        case DType::kMXFP4: return gemv32<MXFP4>(pointers, x, y);
        case DType::kQ2_K: return gemv256<Q2K>(pointers, x, y);
        case DType::kQ4_K: return gemv256<Q4K>(pointers, x, y);
        case DType::kQ6_K: return gemv256<Q6K>(pointers, x, y);
        case DType::kIQ2_XXS: return gemv256<IQ2XXS>(pointers, x, y);
        default: return;
      }
    });
  }
};

}  // namespace tandem::cpu
