#include <immintrin.h>

#include "kernels/cpu/avx512_gemm.h"
#include "kernels/cpu/int8_panel.h"
#include "kernels/cpu/kernel_tables.h"

// int8 tiles: sixteen activation rows meet the sixteen rows of a panel, 32 values deep, in one
// instruction. The exact integer sums then go the same way as everywhere else. All but gemm is
// AVX-512's.

namespace tandem::cpu {
namespace {

constexpr int kTileRows = 16;
constexpr int kDepth = 32;  // values of one product, as one Q8_0 block and one Q4_K sub-block have
constexpr int kTilesAtOnce = 4;
constexpr int kActivations = 4;  // tile numbers, which _tile_* wants as digits; 0 ... 3 hold sums
constexpr int kWeights = 5;

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

/// Stores before come first: the tile intrinsics of g++ 12 do not say what memory they read.
void finish_stores() {
  asm volatile("" ::: "memory");
}

void configure_tiles() {
  TileConfig config;
  for (int tile = 0; tile < kTilesAtOnce; ++tile) {
    config.rows[tile] = kTileRows;
    config.row_bytes[tile] = 64;
  }
  config.rows[kActivations] = kTileRows;
  config.row_bytes[kActivations] = kDepth;
  config.rows[kWeights] = kDepth / 4;
  config.row_bytes[kWeights] = 64;
  finish_stores();
  _tile_loadconfig(&config);
}

/// Sixteen rows of activations, wherever each lies.
struct RowBlock {
  const int8_t* q[kTileRows];
  const float* scale[kTileRows];
  const int32_t* factors[kTileRows];
  const int16_t* sums[kTileRows];
};

/// sums[i][r] = the dot products of row r with the panel, over the values 128 part + 32 i ... of
/// it.
struct alignas(64) TileSums {
  int32_t sums[kTilesAtOnce][kTileRows][kPanelRows];
};

/// Multiplies one group of 32 values or four of them, whose codes start at `codes`.
void multiply_tiles(
    const RowBlock& x, int64_t begin, const uint8_t (*codes)[kPanelRows][4], int num_tiles,
    TileSums& out) {
  alignas(64) int8_t rows[kTileRows][kDepth * kTilesAtOnce];
  for (int r = 0; r < kTileRows; ++r) {
    __builtin_memcpy(rows[r], x.q[r] + begin, static_cast<size_t>(kDepth) * num_tiles);
  }
  finish_stores();
  constexpr int kRowStride = kDepth * kTilesAtOnce;
  const auto load_inputs = [&](int tile) {
    _tile_loadd(4, rows[0] + kDepth * tile, kRowStride);
    _tile_loadd(5, codes[kDepth / 4 * tile], 64);
  };
  // Tile numbers are part of the instructions, so each sum is spelled out.
  load_inputs(0);
  _tile_zero(0);
  _tile_dpbsud(0, 4, 5);
  _tile_stored(0, out.sums[0], 64);
  if (num_tiles == 1) return;
  load_inputs(1);
  _tile_zero(1);
  _tile_dpbsud(1, 4, 5);
  _tile_stored(1, out.sums[1], 64);
  load_inputs(2);
  _tile_zero(2);
  _tile_dpbsud(2, 4, 5);
  _tile_stored(2, out.sums[2], 64);
  load_inputs(3);
  _tile_zero(3);
  _tile_dpbsud(3, 4, 5);
  _tile_stored(3, out.sums[3], 64);
}

__m512i word(const void* bytes) {
  int32_t value;
  __builtin_memcpy(&value, bytes, sizeof(value));
  return _mm512_set1_epi32(value);
}

void gemm32(
    const PanelBlock32* panel, int64_t num_blocks, int zero, const RowBlock& x, __m512* sum) {
  const __m512i zero_pair = _mm512_set1_epi16(static_cast<int16_t>(-zero));
  TileSums tiles;
  for (int r = 0; r < kTileRows; ++r) sum[r] = _mm512_setzero_ps();
  for (int64_t b = 0; b < num_blocks; ++b) {
    // One block of codes at a time: blocks of a panel are not adjacent to each other's codes.
    multiply_tiles(x, kDepth * b, panel[b].codes, 1, tiles);
    const __m512 d = _mm512_loadu_ps(panel[b].d);
    for (int r = 0; r < kTileRows; ++r) {
      const __m512i dot = _mm512_dpwssd_epi32(
          _mm512_load_si512(tiles.sums[0][r]), word(x.sums[r] + 2 * b), zero_pair);
      const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(x.scale[r][b]));
      sum[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, sum[r]);
    }
  }
}

template <bool kHasMins>
void gemm256(const PanelBlock256<8>* panel, int64_t num_blocks, const RowBlock& x, __m512* sum) {
  constexpr int kGroupsAtOnce = kTilesAtOnce;
  TileSums tiles;
  for (int r = 0; r < kTileRows; ++r) sum[r] = _mm512_setzero_ps();
  for (int64_t b = 0; b < num_blocks; ++b) {
    __m512i dot[kTileRows];
    for (int r = 0; r < kTileRows; ++r) dot[r] = _mm512_setzero_si512();
    for (int first = 0; first < 8; first += kGroupsAtOnce) {
      multiply_tiles(
          x, 256 * b + kDepth * first, panel[b].codes + kDepth / 4 * first, kGroupsAtOnce, tiles);
      for (int g = 0; g < kGroupsAtOnce; ++g) {
        const __m512i scale = _mm512_loadu_si512(panel[b].scales[first + g]);
        for (int r = 0; r < kTileRows; ++r) {
          // A scale and a factor fit the low halves of a lane, and the factor's high half is zero.
          const __m512i factor = _mm512_set1_epi32(x.factors[r][8 * b + first + g]);
          dot[r] = _mm512_add_epi32(
              dot[r], _mm512_mullo_epi32(
                          _mm512_load_si512(tiles.sums[g][r]), _mm512_madd_epi16(scale, factor)));
        }
      }
    }
    const __m512 d = _mm512_loadu_ps(panel[b].d);
    const __m512 dmin = _mm512_loadu_ps(panel[b].dmin);
    for (int r = 0; r < kTileRows; ++r) {
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

bool fits_tiles(DType dtype) {
  return dtype == DType::kQ8_0 || dtype == DType::kMXFP4 || dtype == DType::kQ4_K ||
         dtype == DType::kIQ2_XXS;
}

void gemm_block(DType dtype, const std::byte* panel, int64_t k, const RowBlock& x, __m512* sum) {
  const auto* blocks8 = reinterpret_cast<const PanelBlock256<8>*>(panel);
  const auto* blocks32 = reinterpret_cast<const PanelBlock32*>(panel);
  if (dtype == DType::kQ8_0) return gemm32(blocks32, k / 32, 128, x, sum);
  if (dtype == DType::kMXFP4) return gemm32(blocks32, k / 32, 16, x, sum);
  if (dtype == DType::kQ4_K) return gemm256<true>(blocks8, k / 256, x, sum);
  gemm256<false>(blocks8, k / 256, x, sum);
}

void gemm(
    DType dtype, const std::byte* panel, int64_t num_rows, const Int8Rows& x,
    const int32_t* row_ids, int64_t n, float* out, int64_t out_stride) {
  int64_t first = 0;
  if (fits_tiles(dtype) && n >= kTileRows) {
    configure_tiles();
    const auto mask = static_cast<__mmask16>((1U << num_rows) - 1U);
    for (; first + kTileRows <= n; first += kTileRows) {
      RowBlock rows;
      for (int r = 0; r < kTileRows; ++r) {
        const int64_t row = row_ids != nullptr ? row_ids[first + r] : first + r;
        rows.q[r] = x.q + row * x.q_stride;
        rows.scale[r] = x.scale + row * x.scale_stride;
        rows.factors[r] = x.factors + row * x.factors_stride;
        rows.sums[r] = x.sums + row * x.sums_stride;
      }
      __m512 sum[kTileRows];
      gemm_block(dtype, panel, x.k, rows, sum);
      for (int r = 0; r < kTileRows; ++r) {
        _mm512_mask_storeu_ps(out + (first + r) * out_stride, mask, sum[r]);
      }
    }
    _tile_release();
  }
  if (first == n) return;
  Int8Rows rest = x;
  const int32_t* rest_ids = nullptr;
  if (row_ids != nullptr) {
    rest_ids = row_ids + first;
  } else {
    rest.q += first * x.q_stride;
    rest.scale += first * x.scale_stride;
    rest.factors += first * x.factors_stride;
    rest.sums += first * x.sums_stride;
  }
  avx512_gemm(
      dtype, panel, num_rows, rest, rest_ids, n - first, out + first * out_stride, out_stride);
}

}  // namespace

const CpuKernels& amx_kernels() {
  static const CpuKernels kTable = [] {
    CpuKernels out = avx512_kernels();
    out.isa = CpuIsa::kAmx;
    out.int8.gemm = gemm;
    return out;
  }();
  return kTable;
}

}  // namespace tandem::cpu
