#include "kernels/cpu/float_kernels.h"
#include "kernels/cpu/int8_panel.h"
#include "kernels/cpu/int8_x86.h"
#include "kernels/cpu/kernel_tables.h"
#include "kernels/cpu/lanes_avx2.h"

namespace tandem::cpu {
namespace {

/// Byte products go through a 16-bit sum of two: codes of at most 127 stay below its limit, and
/// Q8_0, whose codes go further, moves its signs to the activations.
struct Primitives {
  static constexpr int kQ8Zero = 0;
  static constexpr bool kWide = false;

  static __m256i dot(__m256i codes, __m256i x) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(codes, x), _mm256_set1_epi16(1));
  }
  static __m256i dot_q8(__m256i values, __m256i x) {
    return dot(_mm256_abs_epi8(values), _mm256_sign_epi8(x, values));
  }
  static __m256i negate(__m256i x, uint32_t signs) {
    // Byte i looks at bit i: each byte of the signs goes to eight places, and one bit of it stays.
    const __m256i places =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bytes =
        _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int32_t>(signs)), places);
    const __m256i bits = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201U));
    const __m256i negative = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bits), bits);
    return _mm256_sub_epi8(_mm256_xor_si256(x, negative), negative);
  }
  static __m256i mac16(__m256i sum, __m256i values, __m256i scales) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(values, scales));
  }
};

using Int8 = Int8X86<Primitives>;
using Float = FloatKernelsOf<avx2::Lanes, avx2::kTileRows, avx2::kTileOutputs>;

__m256i word(const void* bytes) {
  int32_t value;
  __builtin_memcpy(&value, bytes, sizeof(value));
  return _mm256_set1_epi32(value);
}

/// One activation row.
struct Row {
  const int8_t* q;
  const float* scale;
  const int32_t* factors;
  const int16_t* sums;
};

/// Eight of a panel's rows, from `o` on, against one activation row.
template <bool kSigned>
__m256 gemm32(const PanelBlock32* panel, int64_t num_blocks, int o, int zero, const Row& x) {
  const __m256i zero_pair = _mm256_set1_epi16(static_cast<int16_t>(-zero));
  __m256 sum = _mm256_setzero_ps();
  for (int64_t b = 0; b < num_blocks; ++b) {
    __m256i dot = _mm256_madd_epi16(word(x.sums + 2 * b), zero_pair);
    for (int i = 0; i < 8; ++i) {
      const __m256i codes = Int8::load(panel[b].codes[i][o]);
      const __m256i q = word(x.q + 32 * b + 4 * i);
      dot =
          _mm256_add_epi32(dot, kSigned ? Primitives::dot_q8(codes, q) : Primitives::dot(codes, q));
    }
    const __m256 scale = _mm256_mul_ps(_mm256_loadu_ps(panel[b].d + o), _mm256_set1_ps(x.scale[b]));
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scale, sum);
  }
  return sum;
}

template <int kGroups, bool kHasMins>
__m256 gemm256(const PanelBlock256<kGroups>* panel, int64_t num_blocks, int o, const Row& x) {
  constexpr int kWords = 64 / kGroups;
  __m256 sum = _mm256_setzero_ps();
  for (int64_t b = 0; b < num_blocks; ++b) {
    __m256i dot = _mm256_setzero_si256();
    for (int g = 0; g < kGroups; ++g) {
      __m256i partial = _mm256_setzero_si256();
      for (int i = kWords * g; i < kWords * (g + 1); ++i) {
        partial = _mm256_add_epi32(
            partial,
            Primitives::dot(Int8::load(panel[b].codes[i][o]), word(x.q + 256 * b + 4 * i)));
      }
      // A scale and a factor fit the low halves of a lane, and the factor's high half is zero.
      const __m256i scale = _mm256_madd_epi16(
          Int8::load(panel[b].scales[g] + o),
          _mm256_set1_epi32(x.factors[8 * b + g * 8 / kGroups]));
      dot = _mm256_add_epi32(dot, _mm256_mullo_epi32(partial, scale));
    }
    __m256i bias = _mm256_setzero_si256();
    for (int p = 0; p < 8; ++p) {
      bias = _mm256_add_epi32(
          bias, _mm256_madd_epi16(Int8::load(panel[b].bias[p][o]), word(x.sums + 16 * b + 2 * p)));
    }
    const __m256 x_scale = _mm256_set1_ps(x.scale[b]);
    if constexpr (!kHasMins) dot = _mm256_sub_epi32(dot, bias);
    const __m256 d = _mm256_mul_ps(_mm256_loadu_ps(panel[b].d + o), x_scale);
    sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), d, sum);
    if constexpr (kHasMins) {
      const __m256 dmin = _mm256_mul_ps(_mm256_loadu_ps(panel[b].dmin + o), x_scale);
      sum = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(bias), dmin, sum);
    }
  }
  return sum;
}

__m256 gemm_part(DType dtype, const std::byte* panel, int64_t k, int o, const Row& x) {
  const auto* blocks8 = reinterpret_cast<const PanelBlock256<8>*>(panel);
  const auto* blocks16 = reinterpret_cast<const PanelBlock256<16>*>(panel);
  const auto* blocks32 = reinterpret_cast<const PanelBlock32*>(panel);
  switch (dtype) {
    case DType::kQ8_0: return gemm32<true>(blocks32, k / 32, o, 0, x);
    case DType::kMXFP4: return gemm32<false>(blocks32, k / 32, o, 16, x);
    case DType::kQ2_K: return gemm256<16, true>(blocks16, k / 256, o, x);
    case DType::kQ4_K: return gemm256<8, true>(blocks8, k / 256, o, x);
    case DType::kQ6_K: return gemm256<16, false>(blocks16, k / 256, o, x);
    case DType::kIQ2_XXS: return gemm256<8, false>(blocks8, k / 256, o, x);
    default: return _mm256_setzero_ps();
  }
}

void gemm(
    DType dtype, const std::byte* panel, int64_t num_rows, const Int8Rows& x,
    const int32_t* row_ids, int64_t n, float* out, int64_t out_stride) {
  for (int64_t r = 0; r < n; ++r) {
    const int64_t row = row_ids != nullptr ? row_ids[r] : r;
    const Row xr = {
        x.q + row * x.q_stride, x.scale + row * x.scale_stride, x.factors + row * x.factors_stride,
        x.sums + row * x.sums_stride};
    float results[kPanelRows];
    _mm256_storeu_ps(results, gemm_part(dtype, panel, x.k, 0, xr));
    _mm256_storeu_ps(results + 8, gemm_part(dtype, panel, x.k, 8, xr));
    for (int64_t o = 0; o < num_rows; ++o) out[r * out_stride + o] = results[o];
  }
}

}  // namespace

const CpuKernels& avx2_kernels() {
  static constexpr CpuKernels kTable = {
      CpuIsa::kAvx2, {Float::quantize, Int8::gemv, Int8::pack, gemm}, Float::table()};
  return kTable;
}

}  // namespace tandem::cpu
