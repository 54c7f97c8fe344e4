#include <arm_neon.h>

#include "kernels/cpu/block_codes.h"
#include "kernels/cpu/float_kernels.h"
#include "kernels/cpu/int8_panel.h"
#include "kernels/cpu/kernel_tables.h"
#include "kernels/cpu/lanes_neon.h"
#include "model/formats/blocks.h"

namespace tandem::cpu {
namespace {

using Float = FloatKernelsOf<neon::Lanes, neon::kTileRows, neon::kTileOutputs>;

constexpr int kRows = 4;  // weight rows that go through one activation block together

template <class T>
T read(const void* bytes) {
  T out;
  __builtin_memcpy(&out, bytes, sizeof(out));
  return out;
}

int8x16_t load(const void* bytes) {
  return vld1q_s8(static_cast<const int8_t*>(bytes));
}

/// Lane r is the sum of the lanes of v[r].
int32x4_t sums(const int32x4_t* v) {
  return vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3]));
}

float f16(const std::byte* bytes) {
  return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(read<uint16_t>(bytes)))), 0);
}

/// Dot products of one block of each of kRows rows with one activation block.
struct Products {
  int32x4_t dot[kRows];
  int32x4_t min_dot[kRows];
  float d[kRows];
  float dmin[kRows];
};

void dot_q8(const std::byte* block, const int8_t* q, int row, Products& out) {
  const std::byte* values = block + offsetof(BlockQ8_0, q);
  const int32x4_t low = vdotq_s32(vdupq_n_s32(0), load(values), load(q));
  out.dot[row] = vdotq_s32(low, load(values + 16), load(q + 16));
  out.d[row] = f16(block);
}

void dot_mxfp4(const std::byte* block, const int8_t* q, int row, Products& out) {
  BlockCodes32 codes;
  expand_codes(DType::kMXFP4, block, codes);
  const int32x4_t low = vdotq_s32(vdupq_n_s32(0), load(codes.values), load(q));
  out.dot[row] = vdotq_s32(low, load(codes.values + 16), load(q + 16));
  out.d[row] = codes.d;
}

/// The minima or biases of sixteen runs of 16 times the activation sums of the runs.
int32x4_t dot_sums(const int16_t* factors, const int16_t* x_sums) {
  int32x4_t out = vdupq_n_s32(0);
  for (int i = 0; i < 16; i += 4) out = vmlal_s16(out, vld1_s16(factors + i), vld1_s16(x_sums + i));
  return out;
}

void dot_q4k(
    const std::byte* block, const int8_t* q, const int32_t* factors, const int16_t* x_sums, int row,
    Products& out) {
  const std::byte* packed = block + offsetof(BlockQ4K, scales);
  const auto a = read<uint32_t>(packed);
  const auto b = read<uint32_t>(packed + 4);
  const auto c = read<uint32_t>(packed + 8);
  const uint32_t words[4] = {
      a & 0x3f3f3f3fU, (c & 0x0f0f0f0fU) | (((a >> 6) & 0x03030303U) << 4), b & 0x3f3f3f3fU,
      ((c >> 4) & 0x0f0f0f0fU) | (((b >> 6) & 0x03030303U) << 4)};
  uint8_t scales[16];  // eight scales, eight minima
  __builtin_memcpy(scales, words, sizeof(scales));
  const uint8x16_t low = vdupq_n_u8(15);
  int32x4_t sum = vdupq_n_s32(0);
  int32x4_t min_sum = vdupq_n_s32(0);
  for (int pair = 0; pair < 4; ++pair) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(block + offsetof(BlockQ4K, q) + 32 * pair);
    const uint8x16_t q0 = vld1q_u8(bytes);
    const uint8x16_t q1 = vld1q_u8(bytes + 16);
    const int8_t* x = q + 64 * pair;
    int32x4_t even = vdotq_s32(vdupq_n_s32(0), vreinterpretq_s8_u8(vandq_u8(q0, low)), load(x));
    even = vdotq_s32(even, vreinterpretq_s8_u8(vandq_u8(q1, low)), load(x + 16));
    int32x4_t odd = vdotq_s32(vdupq_n_s32(0), vreinterpretq_s8_u8(vshrq_n_u8(q0, 4)), load(x + 32));
    odd = vdotq_s32(odd, vreinterpretq_s8_u8(vshrq_n_u8(q1, 4)), load(x + 48));
    sum = vmlaq_n_s32(sum, even, scales[2 * pair] * factors[2 * pair]);
    sum = vmlaq_n_s32(sum, odd, scales[2 * pair + 1] * factors[2 * pair + 1]);
  }
  for (int j = 0; j < 8; ++j) {
    const int32_t pair_sum = int32_t{x_sums[2 * j]} + x_sums[2 * j + 1];
    min_sum = vsetq_lane_s32(vgetq_lane_s32(min_sum, 0) + scales[8 + j] * pair_sum, min_sum, 0);
  }
  out.dot[row] = sum;
  out.min_dot[row] = min_sum;
  out.d[row] = f16(block + offsetof(BlockQ4K, d));
  out.dmin[row] = f16(block + offsetof(BlockQ4K, dmin));
}

void dot_codes(
    DType dtype, const std::byte* block, const int8_t* q, const int32_t* factors,
    const int16_t* x_sums, int row, Products& out) {
  BlockCodes256 codes;
  expand_codes(dtype, block, codes);
  int32x4_t sum = vdupq_n_s32(0);
  for (int g = 0; g < 16; ++g) {
    const int32x4_t partial =
        vdotq_s32(vdupq_n_s32(0), load(codes.codes + 16 * g), load(q + 16 * g));
    sum = vmlaq_n_s32(sum, partial, codes.scales[g] * factors[g / 2]);
  }
  const int zero = block_traits(dtype).zero;
  if (zero != 0) sum = vmlaq_n_s32(sum, dot_sums(codes.scales, x_sums), -zero);
  out.dot[row] = sum;
  out.min_dot[row] = dot_sums(codes.mins, x_sums);
  out.d[row] = codes.d;
  out.dmin[row] = codes.dmin;
}

void gemv_four(
    DType dtype, int64_t bytes, const std::byte* const* rows, const Int8Rows& x, float* out) {
  const bool is32 = dtype == DType::kQ8_0 || dtype == DType::kMXFP4;
  const int64_t group = is32 ? 32 : 256;
  const bool has_mins = block_traits(dtype).has_mins;
  float32x4_t sum = vdupq_n_f32(0);
  Products products;
  for (int64_t b = 0; b < x.k / group; ++b) {
    const int8_t* q = x.q + group * b;
    const int32_t* factors = is32 ? nullptr : x.factors + 8 * b;
    const int16_t* x_sums = x.sums + group / 16 * b;
    for (int r = 0; r < kRows; ++r) {
      const std::byte* block = rows[r] + b * bytes;
      if (dtype == DType::kQ8_0) {
        dot_q8(block, q, r, products);
      } else if (dtype == DType::kMXFP4) {
        dot_mxfp4(block, q, r, products);
      } else if (dtype == DType::kQ4_K) {
        dot_q4k(block, q, factors, x_sums, r, products);
      } else {
        dot_codes(dtype, block, q, factors, x_sums, r, products);
      }
    }
    const float32x4_t x_scale = vdupq_n_f32(x.scale[b]);
    sum = vfmaq_f32(
        sum, vcvtq_f32_s32(sums(products.dot)), vmulq_f32(vld1q_f32(products.d), x_scale));
    if (has_mins) {
      sum = vfmsq_f32(
          sum, vcvtq_f32_s32(sums(products.min_dot)), vmulq_f32(vld1q_f32(products.dmin), x_scale));
    }
  }
  vst1q_f32(out, sum);
}

int64_t bytes_of_block(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0: return sizeof(BlockQ8_0);
    case DType::kMXFP4: return sizeof(BlockMXFP4);
    case DType::kQ2_K: return sizeof(BlockQ2K);
    case DType::kQ4_K: return sizeof(BlockQ4K);
    case DType::kQ6_K: return sizeof(BlockQ6K);
    default: return sizeof(BlockIQ2XXS);
  }
}

void gemv(
    DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, const Int8Rows& x,
    float* out) {
  const std::byte* pointers[kRows];
  const int64_t bytes = bytes_of_block(dtype);
  for (int64_t i = 0; i < num_rows; i += kRows) {
    const int64_t count = num_rows - i < kRows ? num_rows - i : kRows;
    for (int64_t r = 0; r < kRows; ++r) {
      pointers[r] = rows + (i + (r < count ? r : count - 1)) * row_bytes;
    }
    float results[kRows];
    gemv_four(dtype, bytes, pointers, x, results);
    for (int64_t r = 0; r < count; ++r) out[i + r] = results[r];
  }
}

/// The sixteen outputs of one activation row, four to a vector.
struct Outputs {
  int32x4_t v[4];

  static Outputs zero() {
    return {{vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)}};
  }
  /// Adds the products of four words of codes with sixteen activations.
  void add_words(const uint8_t (*codes)[kPanelRows][4], int8x16_t x) {
    for (int j = 0; j < 4; ++j) {
      v[j] = vdotq_laneq_s32(v[j], load(codes[0][4 * j]), x, 0);
      v[j] = vdotq_laneq_s32(v[j], load(codes[1][4 * j]), x, 1);
      v[j] = vdotq_laneq_s32(v[j], load(codes[2][4 * j]), x, 2);
      v[j] = vdotq_laneq_s32(v[j], load(codes[3][4 * j]), x, 3);
    }
  }
};

struct Sums {
  float32x4_t v[4];
};

void gemm32(const PanelBlock32* panel, int zero, const Int8Rows& x, int64_t row, Sums& sum) {
  const int8_t* q = x.q + row * x.q_stride;
  const float* scale = x.scale + row * x.scale_stride;
  const int16_t* x_sums = x.sums + row * x.sums_stride;
  for (int64_t b = 0; b < x.k / 32; ++b) {
    Outputs dot = Outputs::zero();
    dot.add_words(panel[b].codes, load(q + 32 * b));
    dot.add_words(panel[b].codes + 4, load(q + 32 * b + 16));
    const int32x4_t bias = vdupq_n_s32(zero * (int32_t{x_sums[2 * b]} + x_sums[2 * b + 1]));
    for (int j = 0; j < 4; ++j) {
      const float32x4_t d = vmulq_f32(vld1q_f32(panel[b].d + 4 * j), vdupq_n_f32(scale[b]));
      sum.v[j] = vfmaq_f32(sum.v[j], vcvtq_f32_s32(vsubq_s32(dot.v[j], bias)), d);
    }
  }
}

template <int kGroups>
void gemm256(
    const PanelBlock256<kGroups>* panel, bool has_mins, const Int8Rows& x, int64_t row, Sums& sum) {
  constexpr int kWords = 64 / kGroups;
  const int8_t* q = x.q + row * x.q_stride;
  const float* scale = x.scale + row * x.scale_stride;
  const int32_t* factors = x.factors + row * x.factors_stride;
  const int16_t* x_sums = x.sums + row * x.sums_stride;
  for (int64_t b = 0; b < x.k / 256; ++b) {
    Outputs dot = Outputs::zero();
    for (int g = 0; g < kGroups; ++g) {
      Outputs partial = Outputs::zero();
      for (int w = kWords * g; w < kWords * (g + 1); w += 4) {
        partial.add_words(panel[b].codes + w, load(q + 256 * b + 4 * w));
      }
      const int32_t factor = factors[8 * b + g * 8 / kGroups];
      for (int j = 0; j < 4; ++j) {
        const int32x4_t weight = vmulq_n_s32(vld1q_s32(panel[b].scales[g] + 4 * j), factor);
        dot.v[j] = vmlaq_s32(dot.v[j], partial.v[j], weight);
      }
    }
    Outputs bias = Outputs::zero();
    for (int p = 0; p < 8; ++p) {
      for (int j = 0; j < 4; ++j) {
        const int16x4x2_t pairs = vld2_s16(panel[b].bias[p][4 * j]);
        bias.v[j] = vmlal_n_s16(bias.v[j], pairs.val[0], x_sums[16 * b + 2 * p]);
        bias.v[j] = vmlal_n_s16(bias.v[j], pairs.val[1], x_sums[16 * b + 2 * p + 1]);
      }
    }
    const float32x4_t x_scale = vdupq_n_f32(scale[b]);
    for (int j = 0; j < 4; ++j) {
      if (!has_mins) dot.v[j] = vsubq_s32(dot.v[j], bias.v[j]);
      const float32x4_t d = vmulq_f32(vld1q_f32(panel[b].d + 4 * j), x_scale);
      sum.v[j] = vfmaq_f32(sum.v[j], vcvtq_f32_s32(dot.v[j]), d);
      if (has_mins) {
        const float32x4_t dmin = vmulq_f32(vld1q_f32(panel[b].dmin + 4 * j), x_scale);
        sum.v[j] = vfmsq_f32(sum.v[j], vcvtq_f32_s32(bias.v[j]), dmin);
      }
    }
  }
}

void gemm(
    DType dtype, const std::byte* panel, int64_t num_rows, const Int8Rows& x,
    const int32_t* row_ids, int64_t n, float* out, int64_t out_stride) {
  const BlockTraits traits = block_traits(dtype);
  for (int64_t r = 0; r < n; ++r) {
    const int64_t row = row_ids != nullptr ? row_ids[r] : r;
    Sums sum = {{vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)}};
    if (traits.groups == 0) {
      gemm32(reinterpret_cast<const PanelBlock32*>(panel), traits.zero, x, row, sum);
    } else if (traits.groups == 8) {
      gemm256(reinterpret_cast<const PanelBlock256<8>*>(panel), traits.has_mins, x, row, sum);
    } else {
      gemm256(reinterpret_cast<const PanelBlock256<16>*>(panel), traits.has_mins, x, row, sum);
    }
    float results[kPanelRows];
    for (int j = 0; j < 4; ++j) vst1q_f32(results + 4 * j, sum.v[j]);
    for (int64_t o = 0; o < num_rows; ++o) out[r * out_stride + o] = results[o];
  }
}

void pack(
    DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, int64_t k,
    std::byte* panel) {
  pack_panel(dtype, rows, row_bytes, num_rows, k, /*q8_zero=*/0, panel);
}

}  // namespace

const CpuKernels& neon_kernels() {
  static constexpr CpuKernels kTable = {
      CpuIsa::kNeon, {Float::quantize, gemv, pack, gemm}, Float::table()};
  return kTable;
}

}  // namespace tandem::cpu
