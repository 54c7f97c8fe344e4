#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/warp.cuh"

namespace tandem::cuda {

// Activation rows in the forms that the tensor-core dots take. Packing a row uses that row alone,
// so its result does not depend on what else is in the batch.

/// int8 codes with one scale for each 32 values: x = d * q. Row r has its codes at q + r *
/// q_stride.
struct Int8Rows {
  std::byte* q = nullptr;
  float* d = nullptr;    // [rows][cols / 32]
  float* sum = nullptr;  // [rows][cols / 16]: d * (sum of 16 codes)
  int cols = 0;
  int q_stride = 0;
};

/// The stride puts the 32 bytes of one block of eight consecutive rows into different banks.
constexpr int int8_row_stride(int64_t cols) {
  return static_cast<int>((cols + 127) / 128 * 128 + 32);
}

/// A multiple of 16.
constexpr int64_t int8_rows_bytes(int64_t rows, int64_t cols) {
  return (rows * (int8_row_stride(cols) + cols / 32 * 4 + (cols + 15) / 16 * 4) + 15) / 16 * 16;
}

/// Lays the arrays of `rows` rows out in `memory`, which is on 16 bytes.
__host__ __device__ inline Int8Rows int8_rows_at(std::byte* memory, int64_t rows, int64_t cols) {
  Int8Rows packed;
  packed.cols = static_cast<int>(cols);
  packed.q_stride = int8_row_stride(cols);
  packed.q = memory;
  packed.d = reinterpret_cast<float*>(memory + rows * packed.q_stride);
  packed.sum = packed.d + rows * (cols / 32);
  return packed;
}

/// Packs a part of one row: this thread, of the four neighbouring lanes that share a block of 32,
/// packs the eight values of `first` and `second`. All four lanes call together.
__device__ __forceinline__ void pack_int8_eight(
    const float4& first, const float4& second, const Int8Rows& to, int64_t row, int block,
    int quarter) {
  const float v[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
  float largest = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(v[i]));
  const uint32_t quad = 0xfU << (threadIdx.x % 32 / 4 * 4);
  largest = fmaxf(largest, __shfl_xor_sync(quad, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(quad, largest, 2));
  const float d = __fdiv_rn(largest, 127.0f);
  const float inverse = largest > 0 ? __fdiv_rn(127.0f, largest) : 0.0f;
  uint32_t words[2] = {};
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int code = max(-127, min(127, __float2int_rn(__fmul_rn(v[i], inverse))));
    sum += code;
    words[i / 4] |= (static_cast<uint32_t>(code) & 255U) << (8 * (i % 4));
  }
  *reinterpret_cast<uint2*>(to.q + row * to.q_stride + block * 32 + quarter * 8) =
      make_uint2(words[0], words[1]);
  sum += __shfl_xor_sync(quad, sum, 1);
  if (quarter % 2 == 0) {
    to.sum[row * (to.cols / 16) + block * 2 + quarter / 2] = __fmul_rn(d, static_cast<float>(sum));
  }
  if (quarter == 0) to.d[row * (to.cols / 32) + block] = d;
}

/// Packs row `row` with the whole CTA. Limits: cols a multiple of 32, x on 16 bytes.
template <int kNumThreads>
__device__ __forceinline__ void pack_int8_row(const float* x, const Int8Rows& to, int64_t row) {
  constexpr int kAtOnce = 4;  // blocks of a thread whose loads are under way together
  const int num_blocks = to.cols / 32;
  const int quarter = threadIdx.x % 4;
  for (int base = threadIdx.x / 4; base < num_blocks; base += kAtOnce * kNumThreads / 4) {
    float4 v[kAtOnce][2];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int block = base + i * kNumThreads / 4;
      if (block >= num_blocks) continue;
      const auto* from = reinterpret_cast<const float4*>(x + block * 32 + quarter * 8);
      v[i][0] = from[0];
      v[i][1] = from[1];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int block = base + i * kNumThreads / 4;
      if (block < num_blocks) pack_int8_eight(v[i][0], v[i][1], to, row, block, quarter);
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

__device__ __forceinline__ uint32_t to_half_bits(float value) {
  uint32_t bits = 0;
  asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.u32.u16 %0, h;}" : "=r"(bits) : "f"(value));
  return bits;
}

__device__ __forceinline__ float from_half_bits(uint32_t bits) {
  float value = 0;
  asm("{.reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(value) : "r"(bits));
  return value;
}

__device__ __forceinline__ void store_split(const SplitRows& to, int64_t row, int i, float value) {
  const uint32_t high = to_half_bits(value);
  to.high[row * to.stride + i] = static_cast<uint16_t>(high);
  to.low[row * to.stride + i] = static_cast<uint16_t>(to_half_bits(value - from_half_bits(high)));
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
