#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/ptx.cuh"
#include "kernels/linear/dequantize.cuh"
#include "kernels/linear/packed_rows.cuh"

namespace tandem::cuda {

// Dots of 16 weight rows with up to 4 * kQuads activation rows over a range of columns, by one
// warp. The weights are the `a` side of the matrix instructions and the activations the `b` side,
// whose eight columns are the high and the low bytes of four rows. Lane = 4 * group + pair reads
// the weight rows `group` and `group + 8` and, of each four activation rows, half `group % 2` of
// row `group / 2`; it holds in acc[c][0] and [1] the sums of activation row 4 c + pair with its two
// weight rows. Within a block of 32 columns a lane reads columns 8 pair ... 8 pair + 7 of both
// sides. Float operations are spelled out, so that every instance rounds alike: a sum does not
// depend on how many activation rows there are.

inline constexpr int kQuadRows = 4;

/// What a lane needs to find its activations. A lane without an activation row reads another one,
/// and what it sums is of no use.
template <int kQuads>
struct CodeLane {
  const std::byte* q[kQuads];  // its half, at column 8 * pair, of the row that it reads
  const float* d[kQuads];      // scales of the row that it sums
  const float* sum[kQuads];    // sums of codes of the row that it reads

  __device__ __forceinline__ uint2 codes(int c, int block) const {
    return *reinterpret_cast<const uint2*>(q[c] + block * 64);
  }
  /// The scale of the 256 columns that hold block `block` of 32.
  __device__ __forceinline__ float scale(int c, int block) const {
    return d[c][block / (kScaleCols / 32)];
  }
};

/// The lane's view when activation row i is the packed row row_of(i).
template <int kQuads, class RowOf>
__device__ __forceinline__ CodeLane<kQuads> code_lane(const CodeRows& rows, const RowOf& row_of) {
  const int group = threadIdx.x % kWarpLanes / 4;
  const int pair = threadIdx.x % 4;
  CodeLane<kQuads> lane;
#pragma unroll
  for (int c = 0; c < kQuads; ++c) {
    const int read = row_of(kQuadRows * c + group / 2);
    const int summed = row_of(kQuadRows * c + pair);
    lane.q[c] = rows.q + read * rows.q_stride + group % 2 * 32 + 8 * pair;
    lane.sum[c] = rows.sum + read * (rows.cols / 16);
    lane.d[c] = rows.d + summed * scales_of(rows.cols);
  }
  return lane;
}

/// The same when activation row i is packed row i, for i < num_rows; num_rows >= 1.
template <int kQuads>
__device__ __forceinline__ CodeLane<kQuads> code_lane(const CodeRows& rows, int num_rows) {
  return code_lane<kQuads>(rows, [=](int i) { return min(i, num_rows - 1); });
}

/// A lane's part of a tile's sums into sums [kTileRows][kCols], the tile's first row at `to`.
template <int kQuads, int kCols>
__device__ __forceinline__ void store_tile(const float (&acc)[kQuads][2], float* to) {
  const int group = threadIdx.x % kWarpLanes / 4;
  const int pair = threadIdx.x % 4;
#pragma unroll
  for (int c = 0; c < kQuads; ++c) {
    const int col = kQuadRows * c + pair;
    if (col >= kCols) continue;
    to[group * kCols + col] = acc[c][0];
    to[(group + 8) * kCols + col] = acc[c][1];
  }
}

/// The integer dots of 256 columns at most: per activation row and weight row, those with the high
/// and with the low bytes.
template <int kQuads>
using Dots = int[kQuads][4];

/// 256 high + low.
__device__ __forceinline__ float join_dots(int high, int low) {
  return __fmaf_rn(256.0f, static_cast<float>(high), static_cast<float>(low));
}

template <int kQuads>
__device__ __forceinline__ void add_dots(
    Dots<kQuads>& dots, const CodeLane<kQuads>& x, int block, const uint32_t (&a)[4]) {
#pragma unroll
  for (int c = 0; c < kQuads; ++c) {
    const uint2 b = x.codes(c, block);
    mma_s8_k32(dots[c], a, b.x, b.y);
  }
}

/// dots += scale * (dots of one block); scales up to 63 leave 256 columns of room.
template <int kQuads>
__device__ __forceinline__ void add_scaled_dots(
    Dots<kQuads>& dots, const CodeLane<kQuads>& x, int block, const uint32_t (&a)[4],
    const int (&scale)[2]) {
#pragma unroll
  for (int c = 0; c < kQuads; ++c) {
    const uint2 b = x.codes(c, block);
    int of_block[4] = {0, 0, 0, 0};
    mma_s8_k32(of_block, a, b.x, b.y);
#pragma unroll
    for (int i = 0; i < 4; ++i) dots[c][i] += scale[i / 2] * of_block[i];
  }
}

/// sums += scale * (dots of one block), for types with a float scale for each 32 columns.
template <int kQuads>
__device__ __forceinline__ void add_block(
    float (&sums)[kQuads][2], const CodeLane<kQuads>& x, int block, const uint32_t (&a)[4],
    float scale_low, float scale_high) {
#pragma unroll
  for (int c = 0; c < kQuads; ++c) {
    const uint2 b = x.codes(c, block);
    int dots[4] = {0, 0, 0, 0};
    mma_s8_k32(dots, a, b.x, b.y);
    // 32 products of 127 * 127 * 256: no overflow.
    const auto low = static_cast<float>(256 * dots[0] + dots[1]);
    const auto high = static_cast<float>(256 * dots[2] + dots[3]);
    sums[c][0] = __fmaf_rn(low, scale_low, sums[c][0]);
    sums[c][1] = __fmaf_rn(high, scale_high, sums[c][1]);
  }
}

/// acc += sums * (scale of the activations); `block` is one of the sums' blocks.
template <int kQuads>
__device__ __forceinline__ void add_sums(
    float (&acc)[kQuads][2], const CodeLane<kQuads>& x, int block, const float (&sums)[kQuads][2]) {
#pragma unroll
  for (int c = 0; c < kQuads; ++c) {
    const float scale = x.scale(c, block);
    acc[c][0] = __fmaf_rn(scale, sums[c][0], acc[c][0]);
    acc[c][1] = __fmaf_rn(scale, sums[c][1], acc[c][1]);
  }
}

/// acc += activation scale * (d * dots), minus dmin * minima if there are any.
template <int kQuads>
__device__ __forceinline__ void add_super_block(
    float (&acc)[kQuads][2], const CodeLane<kQuads>& x, int block, const Dots<kQuads>& dots,
    const float (&d)[2], const float (&dmin)[2], const float (*minima)[4]) {
#pragma unroll
  for (int c = 0; c < kQuads; ++c) {
    const float scale = x.scale(c, block);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = __fmul_rn(d[r], join_dots(dots[c][2 * r], dots[c][2 * r + 1]));
      if (minima != nullptr) {
        const float least = __fadd_rn(minima[c][2 * r], minima[c][2 * r + 1]);
        sum = __fmaf_rn(-dmin[r], least, sum);
      }
      acc[c][r] = __fmaf_rn(scale, sum, acc[c][r]);
    }
  }
}

/// minima += (minima of a's 8 sub-blocks) . (sums of the codes in them). A sum has up to 21 bits:
/// the column of a row's high bytes takes its first 11, the other column the rest.
template <int kQuads>
__device__ __forceinline__ void add_minima(
    float (&minima)[kQuads][4], const uint32_t (&a)[4], const float (&sums)[kQuads][2]) {
  const bool is_low = threadIdx.x / 4 % 2 == 1;
#pragma unroll
  for (int c = 0; c < kQuads; ++c) {
    uint32_t b[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t first = __float_as_uint(sums[c][i]) & 0xffffe000U;
      b[i] = is_low ? __float_as_uint(__fsub_rn(sums[c][i], __uint_as_float(first))) : first;
    }
    mma_tf32_k8(minima[c], a, b[0], b[1]);
  }
}

/// Tables that a CTA keeps in shared memory for the types that look values up. Each entry stands
/// once for each lane, so that the lookups of a warp meet in no bank.
struct alignas(16) DotTables {
  uint32_t iq2_selectors[256][kWarpLanes];
  uint32_t iq2_signs[128][kWarpLanes];
};

template <DType kDType>
constexpr bool needs_tables() {
  return kDType == DType::kIQ2_XXS;
}

/// Of shared memory, at its start.
template <DType kDType>
constexpr size_t table_bytes() {
  return needs_tables<kDType>() ? sizeof(DotTables) : 0;
}

template <int kNumThreads>
__device__ __forceinline__ void fill_tables(DotTables& tables) {
  constexpr int kParts = kWarpLanes / 4;  // four copies are stored together
  for (uint32_t i = threadIdx.x; i < 256 * kParts; i += kNumThreads) {
    const uint32_t selectors = kIq2Codes.selectors[i / kParts];
    reinterpret_cast<uint4*>(tables.iq2_selectors)[i] =
        make_uint4(selectors, selectors, selectors, selectors);
  }
  for (uint32_t i = threadIdx.x; i < 128 * kParts; i += kNumThreads) {
    const uint32_t signs = kIq2Codes.signs[i / kParts];
    reinterpret_cast<uint4*>(tables.iq2_signs)[i] = make_uint4(signs, signs, signs, signs);
  }
}

/// Whether tile_dot takes the type, and the columns that one warp's range is a multiple of.
constexpr bool has_code_dot(DType dtype) {
  return dtype == DType::kQ8_0 || dtype == DType::kQ2_K || dtype == DType::kQ4_K ||
         dtype == DType::kIQ2_XXS || dtype == DType::kMXFP4;
}
constexpr int dot_grain(DType dtype) {
  return block_values(dtype) == 256 ? 256 : 128;
}

// The types below differ in how a lane gets eight int8 weights and their scale.

template <int kQuads>
__device__ __forceinline__ void dot_q8_0(
    const std::byte* low, const std::byte* high, int cols, int begin, int end,
    const CodeLane<kQuads>& x, float (&acc)[kQuads][2]) {
  const int pair = threadIdx.x % 4;
  const std::byte* rows[2] = {low, high};
#pragma unroll 2
  for (int block = begin / 32; block < end / 32; block += 4) {
    float sums[kQuads][2] = {};
    if (block + 4 <= end / 32) {
      uint2 q[2][4];
      float d[2][4];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const uint2 scales = load_once(reinterpret_cast<const uint2*>(rows[r] + cols + block * 2));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          q[r][i] =
              load_once(reinterpret_cast<const uint2*>(rows[r] + (block + i) * 32 + pair * 8));
        }
        d[r][0] = half_bits_to_float(scales.x & 0xffffU);
        d[r][1] = half_bits_to_float(scales.x >> 16);
        d[r][2] = half_bits_to_float(scales.y & 0xffffU);
        d[r][3] = half_bits_to_float(scales.y >> 16);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t a[4] = {q[0][i].x, q[1][i].x, q[0][i].y, q[1][i].y};
        add_block<kQuads>(sums, x, block + i, a, d[0][i], d[1][i]);
      }
    } else {
      for (int b = block; b < end / 32; ++b) {
        uint2 tail[2];
        float scale[2];
        for (int r = 0; r < 2; ++r) {
          tail[r] = *reinterpret_cast<const uint2*>(rows[r] + b * 32 + pair * 8);
          scale[r] = half_bits_to_float(*reinterpret_cast<const uint16_t*>(rows[r] + cols + b * 2));
        }
        const uint32_t a[4] = {tail[0].x, tail[1].x, tail[0].y, tail[1].y};
        add_block<kQuads>(sums, x, b, a, scale[0], scale[1]);
      }
    }
    add_sums<kQuads>(acc, x, block, sums);  // 128 columns from a multiple of 128 have one scale
  }
}

// Twice the values of four e2m1 codes, one in each byte.
__device__ __forceinline__ uint32_t twice_fp4(uint32_t codes) {
  // Selector nibbles for permute_bytes, without the sign bits.
  const uint32_t joined = codes | (codes >> 4);
  const uint32_t selector = permute_bytes(joined, 0, 0x4420) & 0x7777U;
  const uint32_t positive = permute_bytes(0x03020100U, 0x0c080604U, selector);
  const uint32_t negative = permute_bytes(0xfdfeff00U, 0xf4f8fafcU, selector);
  const uint32_t signs = permute_bytes(codes << 4, 0, 0xba98);  // each byte's top bit, eight times
  return (positive & ~signs) | (negative & signs);
}

template <int kQuads>
__device__ __forceinline__ void dot_mxfp4(
    const std::byte* low, const std::byte* high, int cols, int begin, int end,
    const CodeLane<kQuads>& x, float (&acc)[kQuads][2]) {
  const int pair = threadIdx.x % 4;
  const int shift = pair >= 2 ? 4 : 0;  // columns 16 ... 31 of a block are the high nibbles
  const std::byte* rows[2] = {low, high};
  for (int first = begin / 32; first < end / 32; first += 4) {
    float sums[kQuads][2] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int block = first + i;
      if (block >= end / 32) break;
      uint32_t words[2][2];
      float d[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const uint2 q =
            load_once(reinterpret_cast<const uint2*>(rows[r] + block * 16 + pair % 2 * 8));
        words[r][0] = twice_fp4((q.x >> shift) & 0x0f0f0f0fU);
        words[r][1] = twice_fp4((q.y >> shift) & 0x0f0f0f0fU);
        d[r] = 0.5f * e8m0_to_f32(static_cast<uint8_t>(rows[r][cols / 2 + block]));
      }
      const uint32_t a[4] = {words[0][0], words[1][0], words[0][1], words[1][1]};
      add_block<kQuads>(sums, x, block, a, d[0], d[1]);
    }
    add_sums<kQuads>(acc, x, first, sums);
  }
}

/// What a lane reads of one block of 256 columns of its two rows.
struct Iq2Block {
  uint4 words[2];
  uint32_t d[2];
};

/// A block of the two weight rows of this lane; of none if the rows are null.
struct Iq2Cursor {
  const std::byte* low = nullptr;
  const std::byte* high = nullptr;
  int block = 0;

  __device__ __forceinline__ bool has_block() const { return low != nullptr; }
  __device__ __forceinline__ void load(int cols, Iq2Block& to) const {
    const int words_at = block * 64 + static_cast<int>(threadIdx.x) % 4 * 16;
    const int d_at = cols / 4 + block * 2;
    to.words[0] = load_once(reinterpret_cast<const uint4*>(low + words_at));
    to.words[1] = load_once(reinterpret_cast<const uint4*>(high + words_at));
    to.d[0] = load_once(reinterpret_cast<const uint16_t*>(low + d_at));
    to.d[1] = load_once(reinterpret_cast<const uint16_t*>(high + d_at));
  }
};

/// The scales of a row's eight groups as the whole numbers 2 z + 1, a byte each: even groups in x,
/// odd ones in y, group 2 s + h in byte s. The bits of z lie spread over the row's four lanes.
__device__ __forceinline__ uint2 gather_iq2_scales(const uint4& words) {
  constexpr uint32_t kBits = 0x00010001U;
  uint32_t scales = (words.x >> 15) & kBits;
  scales |= ((words.y >> 15) & kBits) << 4;
  scales |= ((words.z >> 15) & kBits) << 8;
  scales |= ((words.w >> 15) & kBits) << 12;
  scales <<= threadIdx.x % 4;
  scales |= __shfl_xor_sync(0xffffffffU, scales, 1);
  scales |= __shfl_xor_sync(0xffffffffU, scales, 2);
  // Nibble s of either half is that of group 2 s (+ 1): s = 0 and 2, then s = 1 and 3, as bytes.
  const uint32_t first = scales & 0x0f0f0f0fU;
  const uint32_t second = (scales >> 4) & 0x0f0f0f0fU;
  return make_uint2(
      permute_bytes(first, second, 0x5140) * 2 + 0x01010101U,
      permute_bytes(first, second, 0x7362) * 2 + 0x01010101U);
}

/// The entry of a table of rows of kWarpLanes words whose index is `word` from bit 7 on: there it
/// counts in rows as it is.
__device__ __forceinline__ uint32_t
look_up(const std::byte* table, uint32_t word, uint32_t num_entries, uint32_t lane_offset) {
  static_assert(sizeof(uint32_t) * kWarpLanes == 1 << 7);
  const uint32_t offset = (word & ((num_entries - 1) << 7)) | lane_offset;
  return *reinterpret_cast<const uint32_t*>(table + offset);
}

template <int kQuads>
__device__ __forceinline__ void dot_iq2_xxs_block(
    const Iq2Block& weight, int block, const CodeLane<kQuads>& x, float (&acc)[kQuads][2],
    const DotTables& tables) {
  constexpr uint32_t kPositive = 0x002b1908U;  // 8, 25, 43
  constexpr uint32_t kNegative = 0x00d5e7f8U;
  const uint32_t lane_offset = threadIdx.x % kWarpLanes * 4;
  const auto* selectors = reinterpret_cast<const std::byte*>(tables.iq2_selectors);
  const auto* signs = reinterpret_cast<const std::byte*>(tables.iq2_signs);
  const uint2 scales[2] = {gather_iq2_scales(weight.words[0]), gather_iq2_scales(weight.words[1])};
  Dots<kQuads> dots = {};
#pragma unroll
  for (int group = 0; group < 8; ++group) {
    uint32_t a[4];
    int scale[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint4& words = weight.words[r];
      const uint32_t word = group < 2   ? words.x
                            : group < 4 ? words.y
                            : group < 6 ? words.z
                                        : words.w;
      const uint32_t half = group % 2 == 0 ? word : word >> 16;
      const uint32_t select =
          look_up(selectors, half, 256, lane_offset) | look_up(signs, half * 128, 128, lane_offset);
      a[r] = permute_bytes(kPositive, kNegative, select);
      a[2 + r] = permute_bytes(kPositive, kNegative, select >> 16);
      const uint32_t of_half = group % 2 == 0 ? scales[r].x : scales[r].y;
      scale[r] = static_cast<int>(permute_bytes(of_half, 0, 0x4440U | (group / 2)));
    }
    add_scaled_dots<kQuads>(dots, x, block * 8 + group, a, scale);
  }
  const float d[2] = {
      0.125f * half_bits_to_float(weight.d[0]), 0.125f * half_bits_to_float(weight.d[1])};
  add_super_block<kQuads>(acc, x, block * 8, dots, d, d, nullptr);
}

/// The dots of the blocks [begin / 256, end / 256). `ahead` holds the first of them, read at
/// `cursor`, and gets, while the last one is multiplied, the block at `next`, if it is one.
template <int kQuads>
__device__ __forceinline__ void dot_iq2_xxs(
    int cols, int begin, int end, const CodeLane<kQuads>& x, float (&acc)[kQuads][2],
    const DotTables& tables, Iq2Cursor& cursor, Iq2Block& ahead, const Iq2Cursor& next) {
  for (int block = begin / 256; block < end / 256; ++block) {
    const Iq2Block weight = ahead;
    ++cursor.block;
    if (block + 1 == end / 256) cursor = next;
    if (cursor.has_block()) cursor.load(cols, ahead);
    dot_iq2_xxs_block<kQuads>(weight, block, x, acc, tables);
  }
}

/// What a lane reads of one block of 256 columns of its two rows.
struct Q2kBlock {
  uint2 q[2][2];
  uint4 scales[2];
  uint32_t d[2];  // d and dmin
};

__device__ __forceinline__ void load_q2_k(
    const std::byte* low, const std::byte* high, int num_blocks, int block, Q2kBlock& to) {
  const int pair = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const std::byte* row = r == 0 ? low : high;
    const std::byte* codes = row + block * 64 + pair * 8;
    to.q[r][0] = load_once(reinterpret_cast<const uint2*>(codes));
    to.q[r][1] = load_once(reinterpret_cast<const uint2*>(codes + 32));
    to.scales[r] = load_once(reinterpret_cast<const uint4*>(row + num_blocks * 64 + block * 16));
    to.d[r] = load_once(reinterpret_cast<const uint32_t*>(row + num_blocks * 80 + block * 4));
  }
}

template <int kQuads>
__device__ __forceinline__ void dot_q2_k_block(
    const Q2kBlock& weight, int block, const CodeLane<kQuads>& x, float (&acc)[kQuads][2]) {
  const int pair = threadIdx.x % 4;
  const auto& [q, scales, both] = weight;
  Dots<kQuads> dots = {};
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int plane = 0; plane < 4; ++plane) {
      uint32_t a[4];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const uint32_t word =
            plane < 2 ? (h == 0 ? scales[r].x : scales[r].z) : (h == 0 ? scales[r].y : scales[r].w);
        const uint32_t scale = (word >> (plane % 2 * 16 + pair / 2 * 8)) & 15U;
        // A code of two bits times a scale of four fits a byte.
        a[r] = ((q[r][h].x >> (2 * plane)) & 0x03030303U) * scale;
        a[2 + r] = ((q[r][h].y >> (2 * plane)) & 0x03030303U) * scale;
      }
      add_dots<kQuads>(dots, x, block * 8 + h * 4 + plane, a);
    }
  }
  float minima[kQuads][4] = {};
#pragma unroll
  for (int h = 0; h < 2; ++h) {  // sub-blocks 8 h + pair and 8 h + 4 + pair
    uint32_t a[4];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint32_t first = h == 0 ? scales[r].x : scales[r].z;
      const uint32_t second = h == 0 ? scales[r].y : scales[r].w;
      a[r] = __float_as_uint(static_cast<float>((first >> (8 * pair + 4)) & 15U));
      a[2 + r] = __float_as_uint(static_cast<float>((second >> (8 * pair + 4)) & 15U));
    }
    float sums[kQuads][2];
#pragma unroll
    for (int c = 0; c < kQuads; ++c) {
      sums[c][0] = x.sum[c][block * 16 + 8 * h + pair];
      sums[c][1] = x.sum[c][block * 16 + 8 * h + 4 + pair];
    }
    add_minima<kQuads>(minima, a, sums);
  }
  const float d[2] = {half_bits_to_float(both[0] & 0xffffU), half_bits_to_float(both[1] & 0xffffU)};
  const float dmin[2] = {half_bits_to_float(both[0] >> 16), half_bits_to_float(both[1] >> 16)};
  add_super_block<kQuads>(acc, x, block * 8, dots, d, dmin, minima);
}

template <int kQuads>
__device__ __forceinline__ void dot_q2_k(
    const std::byte* low, const std::byte* high, int cols, int begin, int end,
    const CodeLane<kQuads>& x, float (&acc)[kQuads][2]) {
  for (int block = begin / 256; block < end / 256; ++block) {
    Q2kBlock weight;
    load_q2_k(low, high, cols / 256, block, weight);
    dot_q2_k_block<kQuads>(weight, block, x, acc);
  }
}

template <int kQuads>
__device__ __forceinline__ void dot_q4_k(
    const std::byte* low, const std::byte* high, int begin, int end, const CodeLane<kQuads>& x,
    float (&acc)[kQuads][2]) {
  const int pair = threadIdx.x % 4;
  const std::byte* rows[2] = {low, high};
  for (int block = begin / 256; block < end / 256; ++block) {
    uint2 q[2][4];
    uint4 head[2];  // d and dmin, then 12 bytes of packed scales
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::byte* at = rows[r] + block * 144;
      head[r] = load_once(reinterpret_cast<const uint4*>(at));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        q[r][i] = load_once(reinterpret_cast<const uint2*>(at + 16 + i * 32 + pair * 8));
      }
    }
    Dots<kQuads> dots = {};
#pragma unroll
    for (int sub = 0; sub < 8; ++sub) {
      uint32_t a[4];
      int scale[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int shift = 8 * (sub % 4);
        const uint32_t code =
            sub < 4 ? (head[r].y >> shift) & 63U
                    : ((head[r].w >> shift) & 15U) | (((head[r].y >> (shift + 6)) & 3U) << 4);
        scale[r] = static_cast<int>(code);
        a[r] = (q[r][sub / 2].x >> (sub % 2 * 4)) & 0x0f0f0f0fU;
        a[2 + r] = (q[r][sub / 2].y >> (sub % 2 * 4)) & 0x0f0f0f0fU;
      }
      add_scaled_dots<kQuads>(dots, x, block * 8 + sub, a, scale);
    }
    uint32_t a[4];  // minima of the sub-blocks `pair` and `pair + 4`
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int shift = 8 * pair;
      const uint32_t first = (head[r].z >> shift) & 63U;
      const uint32_t second =
          ((head[r].w >> (shift + 4)) & 15U) | (((head[r].z >> (shift + 6)) & 3U) << 4);
      a[r] = __float_as_uint(static_cast<float>(first));
      a[2 + r] = __float_as_uint(static_cast<float>(second));
    }
    float sums[kQuads][2];
#pragma unroll
    for (int c = 0; c < kQuads; ++c) {
      for (int i = 0; i < 2; ++i) {
        const int idx = block * 16 + 2 * (pair + 4 * i);
        sums[c][i] = __fadd_rn(x.sum[c][idx], x.sum[c][idx + 1]);
      }
    }
    float minima[kQuads][4] = {};
    add_minima<kQuads>(minima, a, sums);
    const float d[2] = {
        half_bits_to_float(head[0].x & 0xffffU), half_bits_to_float(head[1].x & 0xffffU)};
    const float dmin[2] = {
        half_bits_to_float(head[0].x >> 16), half_bits_to_float(head[1].x >> 16)};
    add_super_block<kQuads>(acc, x, block * 8, dots, d, dmin, minima);
  }
}

/// acc += the dots over columns [begin, end) of the weight rows `low` (this lane's row group) and
/// `high` (row group + 8). Limits: begin and end multiples of dot_grain, or end == cols. All lanes.
template <DType kDType, int kQuads>
__device__ __forceinline__ void tile_dot(
    const std::byte* low, const std::byte* high, int cols, int begin, int end,
    const CodeLane<kQuads>& x, float (&acc)[kQuads][2], const DotTables* tables) {
  static_assert(has_code_dot(kDType));
  if constexpr (kDType == DType::kQ8_0) {
    dot_q8_0<kQuads>(low, high, cols, begin, end, x, acc);
  } else if constexpr (kDType == DType::kMXFP4) {
    dot_mxfp4<kQuads>(low, high, cols, begin, end, x, acc);
  } else if constexpr (kDType == DType::kIQ2_XXS) {
    Iq2Cursor cursor = {low, high, begin / 256};
    Iq2Block ahead;
    if (begin < end) cursor.load(cols, ahead);
    dot_iq2_xxs<kQuads>(cols, begin, end, x, acc, *tables, cursor, ahead, Iq2Cursor());
  } else if constexpr (kDType == DType::kQ2_K) {
    dot_q2_k<kQuads>(low, high, cols, begin, end, x, acc);
  } else {
    dot_q4_k<kQuads>(low, high, begin, end, x, acc);
  }
}

}  // namespace tandem::cuda
