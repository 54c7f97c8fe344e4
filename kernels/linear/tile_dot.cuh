#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/ptx.cuh"
#include "kernels/linear/dequantize.cuh"
#include "kernels/linear/packed_rows.cuh"

namespace tandem::cuda {

__device__ __forceinline__ uint32_t load_once(const uint32_t* data) {
  uint32_t v;
  asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(data));
  return v;
}
__device__ __forceinline__ uint32_t load_once(const uint16_t* data) {
  uint32_t v;
  asm("{.reg .b16 h; ld.global.nc.u16 h, [%1]; cvt.u32.u16 %0, h;}" : "=r"(v) : "l"(data));
  return v;
}
// Dots of 16 weight rows with up to 8 * kCols8 activation rows over a range of columns, by one
// warp. The weights are the `a` side of the matrix instructions and the activations the `b` side:
// lane = 4 * group + pair reads the weight rows `group` and `group + 8` and the activation row
// `group` of each eight, and holds in acc[c][0..3] the sums of
//   (weight row group, activation 8 c + 2 pair), (.., + 1), (weight row group + 8, same two).
// Within a block of 32 columns a lane reads columns 8 pair ... 8 pair + 7 of both sides.
// Float operations are spelled out, so that every instance rounds alike: a sum does not depend on
// how many activation rows there are.

/// What a lane needs to find its activations. A lane without an activation row reads another one,
/// and what it sums is of no use. With kOneRow there is a single activation row, and only acc[0][0]
/// and acc[0][2] are summed.
template <int kCols8, bool kOneRow = false>
struct Int8Lane {
  static constexpr bool kHasOneRow = kOneRow;
  const std::byte* q[kCols8];  // at column 8 * pair of its row
  const float* d[kCols8][2];   // scales of the activation rows 8 c + 2 pair (+ 1)
  const float* sum[kCols8];    // of the row of q

  __device__ __forceinline__ uint2 codes(int c, int block) const {
    return *reinterpret_cast<const uint2*>(q[c] + block * 32);
  }
  __device__ __forceinline__ float part_sum(int c, int idx) const { return sum[c][idx]; }
};

/// The lane's view when activation row i is packed row i, for i < num_rows; num_rows >= 1.
template <int kCols8, bool kOneRow = false>
__device__ __forceinline__ Int8Lane<kCols8, kOneRow> int8_lane(const Int8Rows& rows, int num_rows) {
  const int group = threadIdx.x % kWarpLanes / 4;
  const int pair = threadIdx.x % 4;
  Int8Lane<kCols8, kOneRow> lane;
#pragma unroll
  for (int c = 0; c < kCols8; ++c) {
    const int row = min(8 * c + group, num_rows - 1);
    lane.q[c] = rows.q + row * rows.q_stride + 8 * pair;
    lane.sum[c] = rows.sum + row * (rows.cols / 16);
    for (int i = 0; i < 2; ++i) {
      lane.d[c][i] = rows.d + min(8 * c + 2 * pair + i, num_rows - 1) * (rows.cols / 32);
    }
  }
  return lane;
}

/// acc += (integer dots) * (weight scale) * (activation scale), for one block of 32 columns.
template <int kCols8, class Lane>
__device__ __forceinline__ void add_scaled(
    float (&acc)[kCols8][4], const Lane& x, int block, const uint32_t (&a)[4], float scale_low,
    float scale_high) {
#pragma unroll
  for (int c = 0; c < kCols8; ++c) {
    const uint2 b = x.codes(c, block);
    int dots[4] = {0, 0, 0, 0};
    mma_s8_k32(dots, a, b.x, b.y);
    const float d0 = x.d[c][0][block];
    acc[c][0] = __fmaf_rn(static_cast<float>(dots[0]), __fmul_rn(scale_low, d0), acc[c][0]);
    acc[c][2] = __fmaf_rn(static_cast<float>(dots[2]), __fmul_rn(scale_high, d0), acc[c][2]);
    if constexpr (!Lane::kHasOneRow) {
      const float d1 = x.d[c][1][block];
      acc[c][1] = __fmaf_rn(static_cast<float>(dots[1]), __fmul_rn(scale_low, d1), acc[c][1]);
      acc[c][3] = __fmaf_rn(static_cast<float>(dots[3]), __fmul_rn(scale_high, d1), acc[c][3]);
    }
  }
}

/// acc -= scale * (minima of a's 8 sub-blocks) . (sums of the activations in them). The sums are
/// split in two so that the product of 11-bit operands loses nothing that matters.
template <int kCols8>
__device__ __forceinline__ void subtract_minima(
    float (&minima)[kCols8][4], const uint32_t (&a)[4], const float (&sums)[kCols8][2]) {
#pragma unroll
  for (int c = 0; c < kCols8; ++c) {
    uint32_t high[2];
    uint32_t low[2];
    for (int i = 0; i < 2; ++i) {
      high[i] = __float_as_uint(sums[c][i]) & 0xffffe000U;
      low[i] = __float_as_uint(sums[c][i] - __uint_as_float(high[i]));
    }
    mma_tf32_k8(minima[c], a, high[0], high[1]);
    mma_tf32_k8(minima[c], a, low[0], low[1]);
  }
}

/// Tables that a CTA keeps in shared memory for the types that look values up. Each entry stands
/// kTableCopies times, and a lane reads its own copy: lookups of a warp then meet in few banks.
inline constexpr int kTableCopies = 16;
struct alignas(16) DotTables {
  uint2 iq2_grid[256][kTableCopies];
  uint2 iq2_signs[128][kTableCopies];  // 0xff in the bytes that are negative
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

/// 0xff in each byte whose bit, of the low four, is set.
__device__ __forceinline__ uint32_t spread_signs(uint32_t bits) {
  return (((bits & 15U) * 0x00204081U) & 0x01010101U) * 0xffU;
}

template <int kNumThreads>
__device__ __forceinline__ void fill_tables(DotTables& tables) {
  constexpr int kPairs = kTableCopies / 2;  // two copies are stored together
  for (int i = threadIdx.x; i < 256 * kPairs; i += kNumThreads) {
    const uint2 grid = kIq2Table.entries[i / kPairs];
    reinterpret_cast<uint4*>(tables.iq2_grid)[i] = make_uint4(grid.x, grid.y, grid.x, grid.y);
  }
  for (int i = threadIdx.x; i < 128 * kPairs; i += kNumThreads) {
    const uint32_t idx = static_cast<uint32_t>(i / kPairs);
    const uint32_t signs = idx | ((static_cast<uint32_t>(__popc(idx)) & 1U) << 7);
    const uint2 mask = make_uint2(spread_signs(signs), spread_signs(signs >> 4));
    reinterpret_cast<uint4*>(tables.iq2_signs)[i] = make_uint4(mask.x, mask.y, mask.x, mask.y);
  }
}

/// Whether tile_dot_int8 takes the type, and the columns that one warp's range is a multiple of.
constexpr bool has_int8_dot(DType dtype) {
  return dtype == DType::kQ8_0 || dtype == DType::kQ2_K || dtype == DType::kQ4_K ||
         dtype == DType::kIQ2_XXS || dtype == DType::kMXFP4;
}
constexpr int dot_grain(DType dtype) {
  return block_values(dtype) == 256 ? 256 : 128;
}

// The four types below differ in how a lane gets eight int8 weights and their scale.

template <int kCols8, class Lane>
__device__ __forceinline__ void dot_q8_0(
    const std::byte* low, const std::byte* high, int cols, int begin, int end, const Lane& x,
    float (&acc)[kCols8][4]) {
  const int pair = threadIdx.x % 4;
  const std::byte* rows[2] = {low, high};
#pragma unroll 2
  for (int block = begin / 32; block < end / 32; block += 4) {
    uint2 q[2][4];
    float d[2][4];
    if (block + 4 <= end / 32) {
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
        add_scaled<kCols8, Lane>(acc, x, block + i, a, d[0][i], d[1][i]);
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
        add_scaled<kCols8, Lane>(acc, x, b, a, scale[0], scale[1]);
      }
    }
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

template <int kCols8, class Lane>
__device__ __forceinline__ void dot_mxfp4(
    const std::byte* low, const std::byte* high, int cols, int begin, int end, const Lane& x,
    float (&acc)[kCols8][4]) {
  const int pair = threadIdx.x % 4;
  const int shift = pair >= 2 ? 4 : 0;  // columns 16 ... 31 of a block are the high nibbles
  const std::byte* rows[2] = {low, high};
#pragma unroll 4
  for (int block = begin / 32; block < end / 32; ++block) {
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
    add_scaled<kCols8, Lane>(acc, x, block, a, d[0], d[1]);
  }
}

// Entry `code` of a table, `code` being the bits of `word` from `begin` on. The bits are rotated to
// where they count in table rows, so that a lookup is a rotation, a mask and a load.
__device__ __forceinline__ uint2
look_up(const std::byte* table, uint32_t word, int begin, uint32_t num_codes) {
  constexpr int kRowBits = 7;
  static_assert(sizeof(uint2) * kTableCopies == 1 << kRowBits);
  const uint32_t turned = __funnelshift_r(word, word, (begin - kRowBits) & 31);
  return *reinterpret_cast<const uint2*>(table + (turned & ((num_codes - 1) << kRowBits)));
}

template <int kCols8, class Lane>
__device__ __forceinline__ void dot_iq2_xxs(
    const std::byte* low, const std::byte* high, int cols, int begin, int end, const Lane& x,
    float (&acc)[kCols8][4], const DotTables& tables) {
  const int lane = threadIdx.x % kWarpLanes;
  const int pair = lane % 4;
  const std::byte* rows[2] = {low, high};
  const auto* grid_table =
      reinterpret_cast<const std::byte*>(&tables.iq2_grid[0][lane % kTableCopies]);
  const auto* sign_table =
      reinterpret_cast<const std::byte*>(&tables.iq2_signs[0][lane % kTableCopies]);
  uint4 next_words[2];
  uint32_t next_d[2];
  const auto load = [&](int block) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      next_words[r] = load_once(reinterpret_cast<const uint4*>(rows[r] + block * 64 + pair * 16));
      next_d[r] = load_once(reinterpret_cast<const uint16_t*>(rows[r] + cols / 4 + block * 2));
    }
  };
  if (begin < end) load(begin / 256);
  for (int block = begin / 256; block < end / 256; ++block) {
    uint4 words[2];  // this lane has the groups 2 pair and 2 pair + 1 of the block
    float twice_d[2];
    float offset[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      words[r] = next_words[r];
      twice_d[r] = 0.25f * half_bits_to_float(next_d[r]);
      offset[r] = -127.5f * twice_d[r];
    }
    if (block + 1 < end / 256) load(block + 1);
#pragma unroll
    for (int group = 0; group < 8; ++group) {
      const int source = (lane & ~3) | (group / 2);
      uint32_t a[4];
      float scale[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const uint32_t indices =
            __shfl_sync(0xffffffffU, group % 2 == 0 ? words[r].x : words[r].z, source);
        const uint32_t signs =
            __shfl_sync(0xffffffffU, group % 2 == 0 ? words[r].y : words[r].w, source);
        // With the scale's four bits z as 128 + z, d (2 z + 1) / 8 is one product, and exact.
        const float biased = __uint_as_float(((signs >> 12) & 0x000f0000U) | 0x43000000U);
        scale[r] = __fmaf_rn(biased, twice_d[r], offset[r]);
        const uint2 grid = look_up(grid_table, indices, 8 * pair, 256);
        const uint2 mask = look_up(sign_table, signs, 7 * pair, 128);
        // Magnitudes are 8 to 43, so adding one to a complement carries into no other byte.
        a[r] = (grid.x ^ mask.x) + (mask.x & 0x01010101U);
        a[2 + r] = (grid.y ^ mask.y) + (mask.y & 0x01010101U);
      }
      add_scaled<kCols8, Lane>(acc, x, block * 8 + group, a, scale[0], scale[1]);
    }
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

template <int kCols8, class Lane>
__device__ __forceinline__ void dot_q2_k_block(
    const Q2kBlock& weight, int block, const Lane& x, float (&acc)[kCols8][4]) {
  const int pair = threadIdx.x % 4;
  const auto& [q, scales, both] = weight;
  const float d[2] = {half_bits_to_float(both[0] & 0xffffU), half_bits_to_float(both[1] & 0xffffU)};
  const float dmin[2] = {half_bits_to_float(both[0] >> 16), half_bits_to_float(both[1] >> 16)};
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
      add_scaled<kCols8, Lane>(acc, x, block * 8 + h * 4 + plane, a, d[0], d[1]);
    }
  }
  float minima[kCols8][4] = {};
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
    float sums[kCols8][2];
#pragma unroll
    for (int c = 0; c < kCols8; ++c) {
      sums[c][0] = x.part_sum(c, block * 16 + 8 * h + pair);
      sums[c][1] = x.part_sum(c, block * 16 + 8 * h + 4 + pair);
    }
    subtract_minima<kCols8>(minima, a, sums);
  }
#pragma unroll
  for (int c = 0; c < kCols8; ++c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) acc[c][i] = __fmaf_rn(-dmin[i / 2], minima[c][i], acc[c][i]);
  }
}

template <int kCols8, class Lane>
__device__ __forceinline__ void dot_q2_k(
    const std::byte* low, const std::byte* high, int cols, int begin, int end, const Lane& x,
    float (&acc)[kCols8][4]) {
  for (int block = begin / 256; block < end / 256; ++block) {
    Q2kBlock weight;
    load_q2_k(low, high, cols / 256, block, weight);
    dot_q2_k_block<kCols8, Lane>(weight, block, x, acc);
  }
}

template <int kCols8, class Lane>
__device__ __forceinline__ void dot_q4_k(
    const std::byte* low, const std::byte* high, int begin, int end, const Lane& x,
    float (&acc)[kCols8][4]) {
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
    float d[2];
    float dmin[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      d[r] = half_bits_to_float(head[r].x & 0xffffU);
      dmin[r] = half_bits_to_float(head[r].x >> 16);
    }
#pragma unroll
    for (int sub = 0; sub < 8; ++sub) {
      uint32_t a[4];
      float scale[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int shift = 8 * (sub % 4);
        const uint32_t code =
            sub < 4 ? (head[r].y >> shift) & 63U
                    : ((head[r].w >> shift) & 15U) | (((head[r].y >> (shift + 6)) & 3U) << 4);
        scale[r] = __fmul_rn(d[r], static_cast<float>(code));
        a[r] = (q[r][sub / 2].x >> (sub % 2 * 4)) & 0x0f0f0f0fU;
        a[2 + r] = (q[r][sub / 2].y >> (sub % 2 * 4)) & 0x0f0f0f0fU;
      }
      add_scaled<kCols8, Lane>(acc, x, block * 8 + sub, a, scale[0], scale[1]);
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
    float sums[kCols8][2];
#pragma unroll
    for (int c = 0; c < kCols8; ++c) {
      for (int i = 0; i < 2; ++i) {
        const int idx = block * 16 + 2 * (pair + 4 * i);
        sums[c][i] = __fadd_rn(x.part_sum(c, idx), x.part_sum(c, idx + 1));
      }
    }
    float minima[kCols8][4] = {};
    subtract_minima<kCols8>(minima, a, sums);
#pragma unroll
    for (int c = 0; c < kCols8; ++c) {
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[c][i] = __fmaf_rn(-dmin[i / 2], minima[c][i], acc[c][i]);
    }
  }
}

/// acc += the dots over columns [begin, end) of the weight rows `low` (this lane's row group) and
/// `high` (row group + 8). Limits: begin and end multiples of dot_grain, or end == cols. All lanes.
template <DType kDType, int kCols8, class Lane>
__device__ __forceinline__ void tile_dot_int8(
    const std::byte* low, const std::byte* high, int cols, int begin, int end, const Lane& x,
    float (&acc)[kCols8][4], const DotTables* tables) {
  static_assert(has_int8_dot(kDType));
  if constexpr (kDType == DType::kQ8_0) {
    dot_q8_0<kCols8, Lane>(low, high, cols, begin, end, x, acc);
  } else if constexpr (kDType == DType::kMXFP4) {
    dot_mxfp4<kCols8, Lane>(low, high, cols, begin, end, x, acc);
  } else if constexpr (kDType == DType::kIQ2_XXS) {
    dot_iq2_xxs<kCols8, Lane>(low, high, cols, begin, end, x, acc, *tables);
  } else if constexpr (kDType == DType::kQ2_K) {
    dot_q2_k<kCols8, Lane>(low, high, cols, begin, end, x, acc);
  } else {
    dot_q4_k<kCols8, Lane>(low, high, begin, end, x, acc);
  }
}

/// The activations of tile_dot_f16.
template <int kCols8>
struct SplitLane {
  const uint16_t* high[kCols8];  // at column 8 * pair of its row
  const uint16_t* low[kCols8];
};

template <int kCols8>
__device__ __forceinline__ SplitLane<kCols8> split_lane(const SplitRows& rows, int num_rows) {
  const int group = threadIdx.x % kWarpLanes / 4;
  const int pair = threadIdx.x % 4;
  SplitLane<kCols8> lane;
#pragma unroll
  for (int c = 0; c < kCols8; ++c) {
    const int row = min(8 * c + group, num_rows - 1);
    lane.high[c] = rows.high + row * rows.stride + 8 * pair;
    lane.low[c] = rows.low + row * rows.stride + 8 * pair;
  }
  return lane;
}

template <int kCols8>
__device__ __forceinline__ void add_split(
    float (&acc)[kCols8][4], const SplitLane<kCols8>& x, int block, const uint4& low,
    const uint4& high) {
#pragma unroll
  for (int c = 0; c < kCols8; ++c) {
    const uint4 main = *reinterpret_cast<const uint4*>(x.high[c] + block * 32);
    const uint4 rest = *reinterpret_cast<const uint4*>(x.low[c] + block * 32);
    mma_f16_k16(acc[c], low.x, high.x, low.y, high.y, main.x, main.y);
    mma_f16_k16(acc[c], low.z, high.z, low.w, high.w, main.z, main.w);
    mma_f16_k16(acc[c], low.x, high.x, low.y, high.y, rest.x, rest.y);
    mma_f16_k16(acc[c], low.z, high.z, low.w, high.w, rest.z, rest.w);
  }
}

/// As tile_dot_int8 for F16 weights and split activations; the caller multiplies by the rows'
/// scales. Limits: cols a multiple of 32.
template <int kCols8>
__device__ __forceinline__ void tile_dot_f16(
    const std::byte* low, const std::byte* high, int begin, int end, const SplitLane<kCols8>& x,
    float (&acc)[kCols8][4]) {
  const int pair = threadIdx.x % 4;
  int block = begin / 32;
  for (; block + 4 <= end / 32; block += 4) {
    uint4 a[2][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[0][i] = load_once(reinterpret_cast<const uint4*>(low + (block + i) * 64 + pair * 16));
      a[1][i] = load_once(reinterpret_cast<const uint4*>(high + (block + i) * 64 + pair * 16));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) add_split<kCols8>(acc, x, block + i, a[0][i], a[1][i]);
  }
  for (; block < end / 32; ++block) {
    const uint4 a0 = load_once(reinterpret_cast<const uint4*>(low + block * 64 + pair * 16));
    const uint4 a1 = load_once(reinterpret_cast<const uint4*>(high + block * 64 + pair * 16));
    add_split<kCols8>(acc, x, block, a0, a1);
  }
}

}  // namespace tandem::cuda
