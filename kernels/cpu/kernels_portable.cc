#include "kernels/cpu/block_codes.h"
#include "kernels/cpu/float_kernels.h"
#include "kernels/cpu/int8_panel.h"
#include "kernels/cpu/kernel_tables.h"
#include "kernels/cpu/lanes_portable.h"

// The definition of the int8 arithmetic in plain loops: integer sums are exact, and one fused
// multiply-add a block, in ascending order, turns them into the float32 result.

namespace tandem::cpu {
namespace {

using Kernels = FloatKernelsOf<portable::Lanes, portable::kTileRows, portable::kTileOutputs>;

float dot_blocks32(DType dtype, const std::byte* row, const Int8Rows& x) {
  BlockCodes32 block;
  float sum = 0;
  for (int64_t b = 0; b < x.k / 32; ++b) {
    expand_codes(dtype, row + b * block_bytes(dtype), block);
    int32_t dot = 0;
    for (int i = 0; i < 32; ++i) dot += int32_t{block.values[i]} * x.q[32 * b + i];
    sum = std::fma(static_cast<float>(dot), block.d * x.scale[b], sum);
  }
  return sum;
}

float dot_blocks256(DType dtype, const std::byte* row, const Int8Rows& x) {
  const BlockTraits traits = block_traits(dtype);
  BlockCodes256 block;
  float sum = 0;
  for (int64_t b = 0; b < x.k / 256; ++b) {
    expand_codes(dtype, row + b * block_bytes(dtype), block);
    int32_t dot = 0;
    int32_t min_dot = 0;
    for (int g = 0; g < 16; ++g) {
      int32_t group_dot = 0;
      for (int i = 16 * g; i < 16 * g + 16; ++i) {
        group_dot += (int32_t{block.codes[i]} - traits.zero) * x.q[256 * b + i];
      }
      dot += block.scales[g] * x.factors[8 * b + g / 2] * group_dot;
      min_dot += block.mins[g] * x.sums[16 * b + g];
    }
    sum = std::fma(static_cast<float>(dot), block.d * x.scale[b], sum);
    if (traits.has_mins) {
      sum = std::fma(-static_cast<float>(min_dot), block.dmin * x.scale[b], sum);
    }
  }
  return sum;
}

void gemv(
    DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, const Int8Rows& x,
    float* out) {
  for (int64_t i = 0; i < num_rows; ++i) {
    const std::byte* row = rows + i * row_bytes;
    out[i] = block_values(dtype) == 32 ? dot_blocks32(dtype, row, x) : dot_blocks256(dtype, row, x);
  }
}

void pack(
    DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, int64_t k,
    std::byte* panel) {
  pack_panel(dtype, rows, row_bytes, num_rows, k, /*q8_zero=*/0, panel);
}

/// sum over `num_words` words of panel row o: (code - zero) * q.
int32_t dot_words(
    const uint8_t (*codes)[kPanelRows][4], int num_words, int64_t o, int zero, const int8_t* q) {
  int32_t dot = 0;
  for (int word = 0; word < num_words; ++word) {
    for (int i = 0; i < 4; ++i) {
      dot += (int32_t{static_cast<int8_t>(codes[word][o][i])} - zero) * q[4 * word + i];
    }
  }
  return dot;
}

float dot_panel32(const PanelBlock32* panel, int64_t o, int zero, const Int8Rows& x, int64_t row) {
  const int8_t* q = x.q + row * x.q_stride;
  const float* scale = x.scale + row * x.scale_stride;
  float sum = 0;
  for (int64_t b = 0; b < x.k / 32; ++b) {
    const int32_t dot = dot_words(panel[b].codes, 8, o, zero, q + 32 * b);
    sum = std::fma(static_cast<float>(dot), panel[b].d[o] * scale[b], sum);
  }
  return sum;
}

template <int kGroups>
float dot_panel256(
    const PanelBlock256<kGroups>* panel, int64_t o, bool has_mins, const Int8Rows& x, int64_t row) {
  constexpr int kWords = 64 / kGroups;
  const int8_t* q = x.q + row * x.q_stride;
  const float* scale = x.scale + row * x.scale_stride;
  const int32_t* factors = x.factors + row * x.factors_stride;
  const int16_t* sums = x.sums + row * x.sums_stride;
  float sum = 0;
  for (int64_t b = 0; b < x.k / 256; ++b) {
    // Before the bias is taken off, codes with a zero point can go beyond 32 bits.
    int64_t dot = 0;
    for (int g = 0; g < kGroups; ++g) {
      dot += int64_t{panel[b].scales[g][o]} * factors[8 * b + g * 8 / kGroups] *
             dot_words(panel[b].codes + kWords * g, kWords, o, 0, q + 256 * b + 4 * kWords * g);
    }
    int32_t bias = 0;
    for (int j = 0; j < 16; ++j) bias += panel[b].bias[j / 2][o][j % 2] * sums[16 * b + j];
    if (!has_mins) dot -= bias;
    sum = std::fma(static_cast<float>(dot), panel[b].d[o] * scale[b], sum);
    if (has_mins) sum = std::fma(-static_cast<float>(bias), panel[b].dmin[o] * scale[b], sum);
  }
  return sum;
}

void gemm(
    DType dtype, const std::byte* panel, int64_t num_rows, const Int8Rows& x,
    const int32_t* row_ids, int64_t n, float* out, int64_t out_stride) {
  const BlockTraits traits = block_traits(dtype);
  for (int64_t r = 0; r < n; ++r) {
    const int64_t row = row_ids != nullptr ? row_ids[r] : r;
    for (int64_t o = 0; o < num_rows; ++o) {
      float& y = out[r * out_stride + o];
      if (traits.groups == 0) {
        y = dot_panel32(reinterpret_cast<const PanelBlock32*>(panel), o, traits.zero, x, row);
      } else if (traits.groups == 8) {
        y = dot_panel256(
            reinterpret_cast<const PanelBlock256<8>*>(panel), o, traits.has_mins, x, row);
      } else {
        y = dot_panel256(
            reinterpret_cast<const PanelBlock256<16>*>(panel), o, traits.has_mins, x, row);
      }
    }
  }
}

}  // namespace

const CpuKernels& portable_kernels() {
  static constexpr CpuKernels kTable = {
      CpuIsa::kPortable, {Kernels::quantize, gemv, pack, gemm}, Kernels::table()};
  return kTable;
}

}  // namespace tandem::cpu
