#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/warp.cuh"

namespace tandem::cuda {

// Activation rows in the forms that the tensor-core dots take. Packing a row uses that row alone,
// so its result does not depend on what else is in the batch.

/// Codes of 16 bits with one scale for each 256 values: x = d * (256 * high + low), high and low
/// being int8, so that the matrix unit takes both. A code is off by 2^-16 of the largest of its 256
/// values at most: about what f16 does to a value. Row r has its codes at q + r * q_stride, of each
/// 32 values the high bytes and then the low ones.
struct CodeRows {
  std::byte* q = nullptr;
  float* d = nullptr;    // [rows][scales_of(cols)]
  float* sum = nullptr;  // [rows][cols / 16]: of 16 codes; an integer
  int cols = 0;
  int q_stride = 0;
};

inline constexpr int kScaleCols = 256;
constexpr int64_t scales_of(int64_t cols) {
  return (cols + kScaleCols - 1) / kScaleCols;
}

/// The stride puts the 64 bytes of one block of neighbouring rows into different banks.
constexpr int code_row_stride(int64_t cols) {
  return static_cast<int>((2 * cols + 127) / 128 * 128 + 64);
}

/// A multiple of 16.
constexpr int64_t code_rows_bytes(int64_t rows, int64_t cols) {
  return (rows * (code_row_stride(cols) + scales_of(cols) * 4 + (cols + 15) / 16 * 4) + 15) / 16 *
         16;
}

/// Lays the arrays of `rows` rows out in `memory`, which is on 16 bytes.
__host__ __device__ inline CodeRows code_rows_at(std::byte* memory, int64_t rows, int64_t cols) {
  CodeRows packed;
  packed.cols = static_cast<int>(cols);
  packed.q_stride = code_row_stride(cols);
  packed.q = memory;
  packed.d = reinterpret_cast<float*>(memory + rows * packed.q_stride);
  packed.sum = packed.d + rows * scales_of(cols);
  return packed;
}

/// Packs 256 values of a row, or what is left of it, with a warp: this lane the eight from column
/// 256 * block + 8 * lane on. A lane past the row brings zeros and stores nothing.
__device__ __forceinline__ void pack_eight(
    const float4& first, const float4& second, const CodeRows& to, int64_t row, int block) {
  constexpr float kLargestCode = 127 * 256;
  const int lane = threadIdx.x % kWarpLanes;
  const int col = block * kScaleCols + lane * 8;
  const float v[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
  float largest = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(v[i]));
  largest = warp_max(largest);
  const float inverse = largest > 0 ? __fdiv_rn(kLargestCode, largest) : 0.0f;
  uint32_t high_words[2] = {};
  uint32_t low_words[2] = {};
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int code = max(-127 * 256, min(127 * 256, __float2int_rn(__fmul_rn(v[i], inverse))));
    const int high = (code + 128) >> 8;
    sum += code;
    high_words[i / 4] |= (static_cast<uint32_t>(high) & 255U) << (8 * (i % 4));
    low_words[i / 4] |= (static_cast<uint32_t>(code) & 255U) << (8 * (i % 4));
  }
  sum += __shfl_xor_sync(0xffffffffU, sum, 1);
  if (col >= to.cols) return;
  std::byte* codes = to.q + row * to.q_stride + col / 32 * 64 + col % 32;
  *reinterpret_cast<uint2*>(codes) = make_uint2(high_words[0], high_words[1]);
  *reinterpret_cast<uint2*>(codes + 32) = make_uint2(low_words[0], low_words[1]);
  if (lane % 2 == 0) to.sum[row * (to.cols / 16) + col / 16] = static_cast<float>(sum);
  if (lane == 0) to.d[row * scales_of(to.cols) + block] = __fdiv_rn(largest, kLargestCode);
}

/// Packs row `row` with the whole CTA. Limits: cols a multiple of 32, x on 16 bytes.
template <int kNumThreads>
__device__ __forceinline__ void pack_code_row(const float* x, const CodeRows& to, int64_t row) {
  constexpr int kAtOnce = 2;  // blocks of a warp whose loads are under way together
  constexpr int kNumWarps = kNumThreads / kWarpLanes;
  const auto num_blocks = static_cast<int>(scales_of(to.cols));
  for (int base = threadIdx.x / kWarpLanes; base < num_blocks; base += kAtOnce * kNumWarps) {
    float4 v[kAtOnce][2] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int col = (base + i * kNumWarps) * kScaleCols + threadIdx.x % kWarpLanes * 8;
      if (col >= to.cols) continue;
      const auto* from = reinterpret_cast<const float4*>(x + col);
      v[i][0] = from[0];
      v[i][1] = from[1];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int block = base + i * kNumWarps;
      if (block < num_blocks) pack_eight(v[i][0], v[i][1], to, row, block);
    }
  }
}

/// Pairs of f16 whose sum is x * 2^-exponent to 22 bits of the row's largest value: high parts at
/// high + r * stride, low parts at low + r * stride.
struct SplitRows {
  uint16_t* high = nullptr;
  uint16_t* low = nullptr;
  float* scale = nullptr;  // [rows]: 2^exponent
  int cols = 0;
  int stride = 0;
};

constexpr int split_row_stride(int64_t cols) {
  return static_cast<int>((cols + 63) / 64 * 64 + 32);
}

constexpr int64_t split_rows_bytes(int64_t rows, int64_t cols) {
  return rows * split_row_stride(cols) * 4 + (rows + 3) / 4 * 16;
}

__host__ __device__ inline SplitRows split_rows_at(std::byte* memory, int64_t rows, int64_t cols) {
  SplitRows packed;
  packed.cols = static_cast<int>(cols);
  packed.stride = split_row_stride(cols);
  packed.high = reinterpret_cast<uint16_t*>(memory);
  packed.low = packed.high + rows * packed.stride;
  packed.scale = reinterpret_cast<float*>(packed.low + rows * packed.stride);
  return packed;
}

__device__ __forceinline__ void store_split(const SplitRows& to, int64_t row, int i, float value) {
  const uint32_t high = to_half_bits(value);
  to.high[row * to.stride + i] = static_cast<uint16_t>(high);
  to.low[row * to.stride + i] =
      static_cast<uint16_t>(to_half_bits(value - half_bits_to_float(high)));
}

/// Packs row `row` with the whole CTA. Limits: cols a multiple of 32, x on 16 bytes.
template <int kNumThreads>
__device__ __forceinline__ void pack_split_row(const float* x, const SplitRows& to, int64_t row) {
  constexpr int kKept = 4;  // groups of four values that a thread keeps between the two passes
  const auto* groups = reinterpret_cast<const float4*>(x);
  const int num_groups = to.cols / 4;
  float4 kept[kKept];
  float largest = 0;
#pragma unroll
  for (int n = 0; n < kKept; ++n) {
    const int i = threadIdx.x + n * kNumThreads;
    kept[n] = i < num_groups ? groups[i] : make_float4(0, 0, 0, 0);
  }
#pragma unroll
  for (int n = 0; n < kKept; ++n) {
    largest = fmaxf(largest, fmaxf(fabsf(kept[n].x), fabsf(kept[n].y)));
    largest = fmaxf(largest, fmaxf(fabsf(kept[n].z), fabsf(kept[n].w)));
  }
  for (int i = threadIdx.x + kKept * kNumThreads; i < num_groups; i += kNumThreads) {
    const float4 v = groups[i];
    largest = fmaxf(largest, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
  }
  largest = cta_max<kNumThreads>(largest);
  // The largest value comes to lie in 2^14 ... 2^15.
  const int bits = static_cast<int>(__float_as_uint(largest) >> 23);
  const int exponent = max(-100, min(100, bits - 127 - 14));
  const float down = __uint_as_float(static_cast<uint32_t>(127 - exponent) << 23);
  const auto store = [&](int i, const float4& v) {
    store_split(to, row, 4 * i, v.x * down);
    store_split(to, row, 4 * i + 1, v.y * down);
    store_split(to, row, 4 * i + 2, v.z * down);
    store_split(to, row, 4 * i + 3, v.w * down);
  };
#pragma unroll
  for (int n = 0; n < kKept; ++n) {
    const int i = threadIdx.x + n * kNumThreads;
    if (i < num_groups) store(i, kept[n]);
  }
  for (int i = threadIdx.x + kKept * kNumThreads; i < num_groups; i += kNumThreads) {
    store(i, groups[i]);
  }
  if (threadIdx.x == 0) {
    to.scale[row] = __uint_as_float(static_cast<uint32_t>(127 + exponent) << 23);
  }
}

}  // namespace tandem::cuda
