#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/ptx.cuh"
#include "kernels/linear/iq2_words.cuh"
#include "model/formats/blocks.h"
#include "model/formats/dtype.h"

namespace tandem::cuda {

// Values of a weight row in device form (kernels/cuda/device_weights.h) as float32. `row` is on 16
// bytes.

/// v = values k ... k + 7 of the row. Limits: k a multiple of 8 below cols. A row of a type without
/// blocks may end before k + 8: the rest is zero.
template <DType kDType>
__device__ __forceinline__ void dequantize8(
    const std::byte* row, int64_t cols, int64_t k, float (&v)[8]) {
  if constexpr (kDType == DType::kF32) {
    const auto* values = reinterpret_cast<const float*>(row);
    if (k + 8 <= cols) {
      const float4 low = reinterpret_cast<const float4*>(values + k)[0];
      const float4 high = reinterpret_cast<const float4*>(values + k)[1];
      v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
      v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
      return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = k + i < cols ? values[k + i] : 0.0f;
  } else if constexpr (kDType == DType::kF16) {
    const auto* values = reinterpret_cast<const uint16_t*>(row);
    if (k + 8 <= cols) {
      const uint4 words = *reinterpret_cast<const uint4*>(values + k);
      const uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        v[i] = half_bits_to_float((pairs[i / 2] >> (16 * (i % 2))) & 0xffffU);
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = k + i < cols ? half_bits_to_float(values[k + i]) : 0.0f;
  } else if constexpr (kDType == DType::kBF16) {
    const auto* values = reinterpret_cast<const uint16_t*>(row);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      v[i] = k + i < cols ? __uint_as_float(static_cast<uint32_t>(values[k + i]) << 16) : 0.0f;
    }
  } else if constexpr (kDType == DType::kQ8_0) {
    const uint2 q = *reinterpret_cast<const uint2*>(row + k);
    const float d = half_bits_to_float(*reinterpret_cast<const uint16_t*>(row + cols + k / 32 * 2));
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t word = i < 4 ? q.x : q.y;
      v[i] = d * static_cast<float>(static_cast<int8_t>(word >> (8 * (i % 4))));
    }
  } else if constexpr (kDType == DType::kQ2_K) {
    const int64_t block = k / 256;
    const int64_t num_blocks = cols / 256;
    const int in_block = static_cast<int>(k % 256);
    const int half = in_block / 128;
    const int plane = in_block / 32 % 4;
    const uint2 q = *reinterpret_cast<const uint2*>(row + block * 64 + half * 32 + in_block % 32);
    const auto scale = static_cast<uint32_t>(row[num_blocks * 64 + block * 16 + in_block / 16]);
    const uint32_t dd = *reinterpret_cast<const uint32_t*>(row + num_blocks * 80 + block * 4);
    const float step = half_bits_to_float(dd & 0xffffU) * static_cast<float>(scale & 15U);
    const float offset = half_bits_to_float(dd >> 16) * static_cast<float>(scale >> 4);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t word = i < 4 ? q.x : q.y;
      v[i] = step * static_cast<float>((word >> (8 * (i % 4) + 2 * plane)) & 3U) - offset;
    }
  } else if constexpr (kDType == DType::kQ4_K) {
    const auto* block = reinterpret_cast<const BlockQ4K*>(row + k / 256 * 144);
    const int in_block = static_cast<int>(k % 256);
    const int sub = in_block / 32;
    const Q4KScaleMin scale_min = q4k_scale_min(block->scales, sub);
    const uint2 q = *reinterpret_cast<const uint2*>(block->q + 32 * (sub / 2) + in_block % 32);
    const float step = half_bits_to_float(block->d) * static_cast<float>(scale_min.scale);
    const float offset = half_bits_to_float(block->dmin) * static_cast<float>(scale_min.min);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t word = i < 4 ? q.x : q.y;
      v[i] = step * static_cast<float>((word >> (8 * (i % 4) + 4 * (sub % 2))) & 15U) - offset;
    }
  } else if constexpr (kDType == DType::kQ6_K) {
    const auto* block = reinterpret_cast<const BlockQ6K*>(row + k / 256 * 210);
    const int in_block = static_cast<int>(k % 256);
    const int half = in_block / 128;
    const int plane = in_block / 32 % 4;
    const float step =
        half_bits_to_float(block->d) * static_cast<float>(block->scales[in_block / 16]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int lane = in_block % 32 + i;
      const int low = (block->q_low[64 * half + 32 * (plane % 2) + lane] >> (4 * (plane / 2))) & 15;
      const int high = (block->q_high[32 * half + lane] >> (2 * plane)) & 3;
      v[i] = step * static_cast<float>((low | (high << 4)) - 32);
    }
  } else if constexpr (kDType == DType::kIQ2_XXS) {
    const int64_t block = k / 256;
    const int group = static_cast<int>(k % 256) / 32;
    const auto* words = reinterpret_cast<const uint32_t*>(row + block * 64) + group / 2;
    const int odd = group % 2;
    uint32_t scale = 0;
#pragma unroll
    for (int part = 0; part < 4; ++part) scale |= iq2_scale_bit(words[4 * part], odd) << part;
    const uint32_t word = words[4 * (k % 32 / 8)];
    const float d =
        half_bits_to_float(*reinterpret_cast<const uint16_t*>(row + cols / 4 + block * 2));
    const float step = d * (static_cast<float>(2 * scale + 1) * 0.125f);
    const uint2 grid = kIq2Table.entries[iq2_grid(word, odd)];
    const uint32_t signs = kIq2Codes.signs[iq2_signs(word, odd)];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t values = i < 4 ? grid.x : grid.y;
      const float value = step * static_cast<float>((values >> (8 * (i % 4))) & 255U);
      v[i] = ((signs >> (4 * i + 2)) & 1U) != 0 ? -value : value;
    }
  } else {
    static_assert(kDType == DType::kMXFP4);
    const int64_t block = k / 32;
    const int in_block = static_cast<int>(k % 32);
    const uint2 q = *reinterpret_cast<const uint2*>(row + block * 16 + in_block % 16);
    const float scale = e8m0_to_f32(static_cast<uint8_t>(row[cols / 2 + block]));
    const int shift = in_block >= 16 ? 4 : 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t word = i < 4 ? q.x : q.y;
      v[i] = scale * fp4_to_f32(static_cast<uint8_t>((word >> (8 * (i % 4) + shift)) & 15U));
    }
  }
}

/// The same for a type that is known at run time only. Limits: not I32.
__device__ __forceinline__ void dequantize8_any(
    DType dtype, const std::byte* row, int64_t cols, int64_t k, float (&v)[8]) {
  switch (dtype) {
    case DType::kF32: return dequantize8<DType::kF32>(row, cols, k, v);
    case DType::kF16: return dequantize8<DType::kF16>(row, cols, k, v);
    case DType::kBF16: return dequantize8<DType::kBF16>(row, cols, k, v);
    case DType::kQ8_0: return dequantize8<DType::kQ8_0>(row, cols, k, v);
    case DType::kQ2_K: return dequantize8<DType::kQ2_K>(row, cols, k, v);
    case DType::kQ4_K: return dequantize8<DType::kQ4_K>(row, cols, k, v);
    case DType::kQ6_K: return dequantize8<DType::kQ6_K>(row, cols, k, v);
    case DType::kIQ2_XXS: return dequantize8<DType::kIQ2_XXS>(row, cols, k, v);
    case DType::kMXFP4: return dequantize8<DType::kMXFP4>(row, cols, k, v);
    case DType::kI32: return;
  }
}

}  // namespace tandem::cuda
