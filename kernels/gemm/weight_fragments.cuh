#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "kernels/linear/dequantize.cuh"
#include "model/formats/dtype.h"

namespace tandem::cuda {

// From a weight row in device form to f16 operands. A stage is 64 values of the row, two groups of
// 32; the thread with pair = lane % 4 takes values 8 pair ... 8 pair + 7 of each. fetch() starts
// the loads of a stage, decode() makes four words of two f16 values for each group. Both are static
// members of WeightFragments<DType>; Raw is what a thread holds between them.

inline constexpr int kStageValues = 64;

/// Bytes 0 and 1, or 2 and 3, of `bytes` as two words 0x6400 | byte: the f16 values 1024 + byte.
__device__ __forceinline__ uint32_t bytes_to_half_bias(uint32_t bytes, int upper) {
  return __byte_perm(bytes, 0x64646464U, upper ? 0x4342 : 0x4140);
}

__device__ __forceinline__ uint32_t half2_bits(__half2 value) {
  return reinterpret_cast<const uint32_t&>(value);
}
__device__ __forceinline__ __half2 bits_half2(uint32_t bits) {
  return reinterpret_cast<const __half2&>(bits);
}

/// (code - offset) * scale - minimum for four codes of eight bits, after 1024 + code.
__device__ __forceinline__ void scale_codes(
    uint32_t codes, float bias, __half2 scale, __half2 negative_minimum, uint32_t* words) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const __half2 code =
        __hsub2(bits_half2(bytes_to_half_bias(codes, i)), __float2half2_rn(1024.0f + bias));
    words[i] = half2_bits(__hfma2(code, scale, negative_minimum));
  }
}

/// The lookups of IQ2_XXS, in shared memory: codes and signs of eight values, four bits a value.
struct Iq2Shared {
  uint32_t codes[256];
  uint32_t signs[128];  // in bit 2 of each value's four
};

__device__ __forceinline__ void fill_iq2_shared(Iq2Shared& shared) {
  for (int i = threadIdx.x; i < 256; i += blockDim.x) {
    shared.codes[i] = kIq2Codes.selectors[i];
  }
  for (uint32_t i = threadIdx.x; i < 128; i += blockDim.x) shared.signs[i] = kIq2Codes.signs[i];
}

/// Types without a faster way: dequantised in float32 when they are fetched.
template <DType kDType>
struct WeightFragments {
  struct Raw {
    uint32_t words[8];
  };
  static __device__ __forceinline__ void fetch(
      Raw& raw, const std::byte* row, int cols, int stage, int pair) {
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      const int k = stage * kStageValues + group * 32;
      float v[8] = {};
      if (k < cols) dequantize8<kDType>(row, cols, k + pair * 8, v);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        raw.words[group * 4 + i] = half2_bits(__floats2half2_rn(v[2 * i], v[2 * i + 1]));
      }
    }
  }
  static __device__ __forceinline__ void decode(
      const Raw& raw, const Iq2Shared&, int, int, uint32_t (&words)[2][4]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) words[i / 4][i % 4] = raw.words[i];
  }
};

template <>
struct WeightFragments<DType::kF16> {
  struct Raw {
    uint4 groups[2];
  };
  static __device__ __forceinline__ void fetch(
      Raw& raw, const std::byte* row, int cols, int stage, int pair) {
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      const int k = stage * kStageValues + group * 32;
      raw.groups[group] = uint4{0, 0, 0, 0};
      if (k < cols) {
        raw.groups[group] = *reinterpret_cast<const uint4*>(row + (k + pair * 8) * 2);
      }
    }
  }
  static __device__ __forceinline__ void decode(
      const Raw& raw, const Iq2Shared&, int, int, uint32_t (&words)[2][4]) {
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      words[group][0] = raw.groups[group].x;
      words[group][1] = raw.groups[group].y;
      words[group][2] = raw.groups[group].z;
      words[group][3] = raw.groups[group].w;
    }
  }
};

template <>
struct WeightFragments<DType::kQ8_0> {
  struct Raw {
    uint2 groups[2];
    uint32_t scales;
  };
  static __device__ __forceinline__ void fetch(
      Raw& raw, const std::byte* row, int cols, int stage, int pair) {
    const int k = stage * kStageValues;
    raw.groups[0] = *reinterpret_cast<const uint2*>(row + k + pair * 8);
    const std::byte* scales = row + cols + k / 32 * 2;
    if (k + 32 < cols) {
      raw.groups[1] = *reinterpret_cast<const uint2*>(row + k + 32 + pair * 8);
      raw.scales = *reinterpret_cast<const uint32_t*>(scales);
    } else {
      raw.groups[1] = uint2{0, 0};
      raw.scales = *reinterpret_cast<const uint16_t*>(scales);
    }
  }
  static __device__ __forceinline__ void decode(
      const Raw& raw, const Iq2Shared&, int, int, uint32_t (&words)[2][4]) {
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      const __half2 both = bits_half2(raw.scales);
      const __half2 scale = group == 0 ? __low2half2(both) : __high2half2(both);
      const __half2 zero = __float2half2_rn(0.0f);
      scale_codes(raw.groups[group].x ^ 0x80808080U, 128.0f, scale, zero, words[group]);
      scale_codes(raw.groups[group].y ^ 0x80808080U, 128.0f, scale, zero, words[group] + 2);
    }
  }
};

template <>
struct WeightFragments<DType::kQ4_K> {
  static constexpr float kZeroMax = 1000;  // 1024 + zero is a whole number of f16

  struct Raw {
    uint2 codes;   // low nibbles: group 0, high: group 1
    uint4 header;  // d, dmin, scales
  };
  static __device__ __forceinline__ void fetch(
      Raw& raw, const std::byte* row, int, int stage, int pair) {
    const std::byte* block = row + stage / 4 * 144;
    raw.header = *reinterpret_cast<const uint4*>(block);
    raw.codes = *reinterpret_cast<const uint2*>(block + 16 + stage % 4 * 32 + pair * 8);
  }
  static __device__ __forceinline__ void decode(
      const Raw& raw, const Iq2Shared&, int stage, int, uint32_t (&words)[2][4]) {
    const __half2 d = bits_half2(raw.header.x);
    const float step = __low2float(d);
    const float step_min = __high2float(d);
    // Two consecutive sub-blocks, 2 (stage % 4) and the next: their 6-bit fields as two bytes.
    const int shift = stage % 2 * 16;
    const uint32_t first = raw.header.y >> shift;   // scales of sub-blocks 0...3
    const uint32_t second = raw.header.z >> shift;  // minima of 0...3
    const uint32_t third = raw.header.w >> shift;   // low bits of 4...7
    const bool upper = stage % 4 >= 2;
    const uint32_t scales = upper ? (third & 0x0f0fU) | ((first >> 2) & 0x3030U) : first & 0x3f3fU;
    const uint32_t minima =
        upper ? ((third >> 4) & 0x0f0fU) | ((second >> 2) & 0x3030U) : second & 0x3f3fU;
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      const float s = step * static_cast<float>((scales >> (8 * group)) & 255U);
      const float m = step_min * static_cast<float>((minima >> (8 * group)) & 255U);
      // s code - m as s (code - zero) - rest with a whole number for zero: the large part of the
      // minimum cancels exactly, and what is rounded is no larger than the value itself.
      const float zero = s == 0 ? 0.0f : fminf(fmaxf(rintf(__fdividef(m, s)), -kZeroMax), kZeroMax);
      const __half2 scale = __float2half2_rn(s);
      const __half2 negative_rest = __float2half2_rn(__fmaf_rn(s, zero, -m));
      const uint32_t x = (raw.codes.x >> (4 * group)) & 0x0f0f0f0fU;
      const uint32_t y = (raw.codes.y >> (4 * group)) & 0x0f0f0f0fU;
      scale_codes(x, zero, scale, negative_rest, words[group]);
      scale_codes(y, zero, scale, negative_rest, words[group] + 2);
    }
  }
};

template <>
struct WeightFragments<DType::kQ2_K> {
  struct Raw {
    uint2 codes;      // four planes
    uint32_t scales;  // of two planes, two sub-blocks each
    uint32_t d;       // d, dmin
  };
  static __device__ __forceinline__ void fetch(
      Raw& raw, const std::byte* row, int cols, int stage, int pair) {
    const int block = stage / 4;
    const int num_blocks = cols / 256;
    const int half = stage % 4 / 2;
    raw.codes = *reinterpret_cast<const uint2*>(row + block * 64 + half * 32 + pair * 8);
    raw.scales =
        *reinterpret_cast<const uint32_t*>(row + num_blocks * 64 + block * 16 + stage % 4 * 4);
    raw.d = *reinterpret_cast<const uint32_t*>(row + num_blocks * 80 + block * 4);
  }
  static __device__ __forceinline__ void decode(
      const Raw& raw, const Iq2Shared&, int stage, int pair, uint32_t (&words)[2][4]) {
    const __half2 d = bits_half2(raw.d);
    const float step = __low2float(d);
    const float step_min = __high2float(d);
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      const uint32_t field = raw.scales >> (16 * group + 8 * (pair / 2));
      const __half2 scale = __float2half2_rn(step * static_cast<float>(field & 15U));
      const __half2 negative_minimum =
          __float2half2_rn(-step_min * static_cast<float>((field >> 4) & 15U));
      const int shift = 2 * (stage % 2 * 2 + group);
      const uint32_t x = (raw.codes.x >> shift) & 0x03030303U;
      const uint32_t y = (raw.codes.y >> shift) & 0x03030303U;
      scale_codes(x, 0.0f, scale, negative_minimum, words[group]);
      scale_codes(y, 0.0f, scale, negative_minimum, words[group] + 2);
    }
  }
};

template <>
struct WeightFragments<DType::kIQ2_XXS> {
  struct Raw {
    uint32_t word;  // of this thread's eighths of two groups
    uint32_t d;
  };
  static __device__ __forceinline__ void fetch(
      Raw& raw, const std::byte* row, int cols, int stage, int pair) {
    raw.word = *reinterpret_cast<const uint32_t*>(row + stage / 4 * 64 + pair * 16 + stage % 4 * 4);
    raw.d = *reinterpret_cast<const uint16_t*>(row + cols / 4 + stage / 4 * 2);
  }
  static __device__ __forceinline__ void decode(
      const Raw& raw, const Iq2Shared& shared, int, int, uint32_t (&words)[2][4]) {
    // f16 8, 25, 43 and their negatives, high and low bytes, at 0 ... 2 and 4 ... 6.
    constexpr uint32_t kHigh = 0x00514e48U;
    constexpr uint32_t kHighNegative = 0x00d1cec8U;
    constexpr uint32_t kLow = 0x00604000U;
    const float eighth = __half2float(__ushort_as_half(static_cast<uint16_t>(raw.d))) * 0.125f;
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      const uint32_t select =
          shared.codes[iq2_grid(raw.word, group)] | shared.signs[iq2_signs(raw.word, group)];
      // The four lanes of a row have a bit of the scale each.
      const uint32_t votes = __ballot_sync(0xffffffff, iq2_scale_bit(raw.word, group) != 0);
      const uint32_t scale_bits = (votes >> (threadIdx.x & 28U)) & 15U;
      const __half2 scale = __float2half2_rn(eighth * static_cast<float>(2 * scale_bits + 1));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t part = select >> (16 * half);
        const uint32_t high = __byte_perm(kHigh, kHighNegative, part);
        const uint32_t low = __byte_perm(kLow, kLow, part);
        words[group][2 * half] =
            half2_bits(__hmul2(bits_half2(__byte_perm(low, high, 0x5140)), scale));
        words[group][2 * half + 1] =
            half2_bits(__hmul2(bits_half2(__byte_perm(low, high, 0x7362)), scale));
      }
    }
  }
};

template <>
struct WeightFragments<DType::kMXFP4> {
  struct Raw {
    uint2 groups[2];
    uint32_t exponents;
  };
  static __device__ __forceinline__ void fetch(
      Raw& raw, const std::byte* row, int cols, int stage, int pair) {
    const int k = stage * kStageValues;
    raw.groups[0] = *reinterpret_cast<const uint2*>(row + k / 2 + pair % 2 * 8);
    const std::byte* exponents = row + cols / 2 + k / 32;
    if (k + 32 < cols) {
      raw.groups[1] = *reinterpret_cast<const uint2*>(row + k / 2 + 16 + pair % 2 * 8);
      raw.exponents = *reinterpret_cast<const uint16_t*>(exponents);
    } else {
      raw.groups[1] = uint2{0, 0};
      raw.exponents = static_cast<uint32_t>(*exponents);
    }
  }
  static __device__ __forceinline__ void decode(
      const Raw& raw, const Iq2Shared&, int, int pair, uint32_t (&words)[2][4]) {
    const int shift = pair / 2 * 4;
#pragma unroll
    for (int group = 0; group < 2; ++group) {
      // A code's bits as f16 exponent and mantissa bits are its value times 2^-14. The scale is
      // applied in two factors, so that neither leaves the range of f16.
      const int exponent = static_cast<int>((raw.exponents >> (8 * group)) & 255U) - 127;
      const int clamped = min(max(exponent, -38), 15);
      const __half2 rebias = __float2half2_rn(16384.0f);
      const __half2 scale = __float2half2_rn(__int_as_float((clamped + 127) << 23));
      const uint32_t codes[2] = {raw.groups[group].x >> shift, raw.groups[group].y >> shift};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint32_t high = ((codes[i] & 0x07070707U) << 1) | ((codes[i] & 0x08080808U) << 4);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const uint32_t pair_bits = __byte_perm(high, 0, j == 0 ? 0x1404 : 0x3424);
          words[group][2 * i + j] =
              half2_bits(__hmul2(__hmul2(bits_half2(pair_bits), rebias), scale));
        }
      }
    }
  }
};

}  // namespace tandem::cuda
