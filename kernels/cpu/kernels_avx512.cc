#include "kernels/cpu/avx512_gemm.h"
#include "kernels/cpu/float_kernels.h"
#include "kernels/cpu/int8_avx512.h"
#include "kernels/cpu/int8_panel.h"
#include "kernels/cpu/int8_x86.h"
#include "kernels/cpu/kernel_tables.h"
#include "kernels/cpu/lanes_avx512.h"

namespace tandem::cpu {
namespace {

/// The instructions that differ from AVX2: VNNI multiplies unsigned by signed bytes and adds four
/// products to a 32-bit lane without saturation.
struct Primitives : avx512::Wide {
  static constexpr bool kWide = true;
  static constexpr int kQ8Zero = 128;

  static __m256i dot(__m256i codes, __m256i x) {
    return _mm256_dpbusd_epi32(_mm256_setzero_si256(), codes, x);
  }
  static __m256i dot_q8(__m256i values, __m256i x) {
    return dot(_mm256_xor_si256(values, _mm256_set1_epi8(-128)), x);
  }
  /// x with the bytes negated whose bit of `signs` is set.
  static __m256i negate(__m256i x, uint32_t signs) {
    return _mm256_mask_sub_epi8(x, signs, _mm256_setzero_si256(), x);
  }
  /// sum + values * scales. Limits: values fit 16 bits, the scales' high halves are zero.
  static __m256i mac16(__m256i sum, __m256i values, __m256i scales) {
    return _mm256_dpwssd_epi32(sum, values, scales);
  }
};

using Int8 = Int8X86<Primitives>;
using Float = FloatKernelsOf<avx512::Lanes, avx512::kTileRows, avx512::kTileOutputs>;

/// kRows activation rows of a tile: where each starts.
template <int kRows>
struct TileRows {
  const int8_t* q[kRows];
  const float* scale[kRows];
  const int32_t* factors[kRows];
  const int16_t* sums[kRows];
};

__m512i word(const void* bytes) {
  int32_t value;
  __builtin_memcpy(&value, bytes, sizeof(value));
  return _mm512_set1_epi32(value);
}

/// Adds the products of kWords words of codes with the activations from `begin` on. Word by word,
/// so that neighbouring instructions belong to different rows and none waits for the one before it.
template <int kWords, int kRows>
void add_words(
    const uint8_t (*codes)[kPanelRows][4], const TileRows<kRows>& x, int64_t begin, __m512i* dot) {
#pragma GCC unroll 8
  for (int i = 0; i < kWords; ++i) {
    const __m512i w = _mm512_loadu_si512(codes[i]);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      dot[r] = _mm512_dpbusd_epi32(dot[r], w, word(x.q[r] + begin + 4 * i));
    }
  }
}

template <int kRows>
void gemm32(
    const PanelBlock32* panel, int64_t num_blocks, int zero, const TileRows<kRows>& x,
    __m512* sum) {
  const __m512i zero_pair = _mm512_set1_epi16(static_cast<int16_t>(-zero));
  for (int r = 0; r < kRows; ++r) sum[r] = _mm512_setzero_ps();
  for (int64_t b = 0; b < num_blocks; ++b) {
    __m512i dot[kRows];
    for (int r = 0; r < kRows; ++r) {
      // Starts from -zero * (sum of the 32 activations).
      dot[r] = _mm512_dpwssd_epi32(_mm512_setzero_si512(), word(x.sums[r] + 2 * b), zero_pair);
    }
    add_words<8>(panel[b].codes, x, 32 * b, dot);
    const __m512 d = _mm512_loadu_ps(panel[b].d);
    for (int r = 0; r < kRows; ++r) {
      const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(x.scale[r][b]));
      sum[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[r]), scale, sum[r]);
    }
  }
}

template <int kGroups, bool kHasMins, int kRows>
void gemm256(
    const PanelBlock256<kGroups>* panel, int64_t num_blocks, const TileRows<kRows>& x,
    __m512* sum) {
  constexpr int kWords = 64 / kGroups;
  for (int r = 0; r < kRows; ++r) sum[r] = _mm512_setzero_ps();
  for (int64_t b = 0; b < num_blocks; ++b) {
    __m512i dot[kRows];
    for (int r = 0; r < kRows; ++r) dot[r] = _mm512_setzero_si512();
    for (int g = 0; g < kGroups; ++g) {
      __m512i partial[kRows];
      for (int r = 0; r < kRows; ++r) partial[r] = _mm512_setzero_si512();
      add_words<kWords>(panel[b].codes + kWords * g, x, 256 * b + 4 * kWords * g, partial);
      const __m512i scale = _mm512_loadu_si512(panel[b].scales[g]);
      for (int r = 0; r < kRows; ++r) {
        // A scale and a factor fit the low halves of a lane, and the factor's high half is zero.
        const __m512i factor = _mm512_set1_epi32(x.factors[r][8 * b + g * 8 / kGroups]);
        dot[r] = _mm512_add_epi32(
            dot[r], _mm512_mullo_epi32(partial[r], _mm512_madd_epi16(scale, factor)));
      }
    }
    const __m512 d = _mm512_loadu_ps(panel[b].d);
    const __m512 dmin = _mm512_loadu_ps(panel[b].dmin);
    for (int r = 0; r < kRows; ++r) {
      __m512i bias = _mm512_setzero_si512();
      const int16_t* sums = x.sums[r] + 16 * b;
      for (int p = 0; p < 8; ++p) {
        bias = _mm512_dpwssd_epi32(bias, _mm512_loadu_si512(panel[b].bias[p]), word(sums + 2 * p));
      }
      const __m512 x_scale = _mm512_set1_ps(x.scale[r][b]);
      if constexpr (!kHasMins) dot[r] = _mm512_sub_epi32(dot[r], bias);
      sum[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[r]), _mm512_mul_ps(d, x_scale), sum[r]);
      if constexpr (kHasMins) {
        sum[r] = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(bias), _mm512_mul_ps(dmin, x_scale), sum[r]);
      }
    }
  }
}

template <int kRows>
void gemm_rows(
    DType dtype, const std::byte* panel, int64_t num_rows, const Int8Rows& x,
    const int32_t* row_ids, int64_t first, float* out, int64_t out_stride) {
  TileRows<kRows> rows;
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = row_ids != nullptr ? row_ids[first + r] : first + r;
    rows.q[r] = x.q + row * x.q_stride;
    rows.scale[r] = x.scale + row * x.scale_stride;
    rows.factors[r] = x.factors + row * x.factors_stride;
    rows.sums[r] = x.sums + row * x.sums_stride;
  }
  __m512 sum[kRows];
  const auto* blocks8 = reinterpret_cast<const PanelBlock256<8>*>(panel);
  const auto* blocks16 = reinterpret_cast<const PanelBlock256<16>*>(panel);
  const auto* blocks32 = reinterpret_cast<const PanelBlock32*>(panel);
  switch (dtype) {
    case DType::kQ8_0: gemm32<kRows>(blocks32, x.k / 32, 128, rows, sum); break;
    case DType::kMXFP4: gemm32<kRows>(blocks32, x.k / 32, 16, rows, sum); break;
    case DType::kQ2_K: gemm256<16, true, kRows>(blocks16, x.k / 256, rows, sum); break;
    case DType::kQ4_K: gemm256<8, true, kRows>(blocks8, x.k / 256, rows, sum); break;
    case DType::kQ6_K: gemm256<16, false, kRows>(blocks16, x.k / 256, rows, sum); break;
    case DType::kIQ2_XXS: gemm256<8, false, kRows>(blocks8, x.k / 256, rows, sum); break;
    default: return;
  }
  const auto mask = static_cast<__mmask16>((1U << num_rows) - 1U);
  for (int r = 0; r < kRows; ++r) {
    _mm512_mask_storeu_ps(out + (first + r) * out_stride, mask, sum[r]);
  }
}

}  // namespace

void avx512_gemm(
    DType dtype, const std::byte* panel, int64_t num_rows, const Int8Rows& x,
    const int32_t* row_ids, int64_t n, float* out, int64_t out_stride) {
  int64_t r = 0;
  for (; r + 8 <= n; r += 8) {
    gemm_rows<8>(dtype, panel, num_rows, x, row_ids, r, out, out_stride);
  }
  for (; r + 2 <= n; r += 2) {
    gemm_rows<2>(dtype, panel, num_rows, x, row_ids, r, out, out_stride);
  }
  for (; r < n; ++r) gemm_rows<1>(dtype, panel, num_rows, x, row_ids, r, out, out_stride);
}

const CpuKernels& avx512_kernels() {
  static constexpr CpuKernels kTable = {
      CpuIsa::kAvx512, {Float::quantize, Int8::gemv, Int8::pack, avx512_gemm}, Float::table()};
  return kTable;
}

}  // namespace tandem::cpu
