#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "model/formats/iq2_grid.h"

namespace tandem::cuda {

// The device form of an IQ2_XXS block: sixteen words, so that the lane that multiplies eight values
// of each group of 32 finds what it needs in four words of its own. Word 4 p + s describes the
// values 8 p ... 8 p + 7 of the groups 2 s (low half) and 2 s + 1 (high half):
//   low half:  bits 0 ... 6 index of the signs, 7 ... 14 index in the grid, 15 bit p of the scale;
//   high half: bits 16 ... 22 signs, 23 ... 30 grid, 31 bit p of the scale.
// In the file a group has its four grid bytes first, then a word of four sign indices and the
// scale.

inline constexpr int kIq2Words = 16;

/// Word 4 `part` + `pair_of_groups` from the file's block, whose group g is the words
/// file[2 g] (grid) and file[2 g + 1] (signs and scale).
__host__ __device__ constexpr uint32_t iq2_word(
    const uint32_t (&file)[kIq2Words], int part, int pair_of_groups) {
  uint32_t word = 0;
  for (int odd = 0; odd < 2; ++odd) {
    const uint32_t grid = file[2 * (2 * pair_of_groups + odd)];
    const uint32_t rest = file[2 * (2 * pair_of_groups + odd) + 1];
    const uint32_t half = ((rest >> (7 * part)) & 127U) | (((grid >> (8 * part)) & 255U) << 7) |
                          (((rest >> (28 + part)) & 1U) << 15);
    word |= half << (16 * odd);
  }
  return word;
}

__host__ __device__ constexpr uint32_t iq2_signs(uint32_t word, int odd) {
  return (word >> (16 * odd)) & 127U;
}
__host__ __device__ constexpr uint32_t iq2_grid(uint32_t word, int odd) {
  return (word >> (16 * odd + 7)) & 255U;
}
__host__ __device__ constexpr uint32_t iq2_scale_bit(uint32_t word, int odd) {
  return (word >> (16 * odd + 15)) & 1U;
}

/// The codebook, eight magnitudes an entry. Lookups diverge, so kernels that use it much keep what
/// they need of it in shared memory.
struct Iq2Table {
  uint2 entries[256];
};

constexpr Iq2Table make_iq2_table() {
  Iq2Table table = {};
  for (size_t i = 0; i < 256; ++i) {
    uint32_t words[2] = {};
    for (size_t j = 0; j < 8; ++j) {
      words[j / 4] |= static_cast<uint32_t>(kIq2XxsGrid[i][j]) << (8 * (j % 4));
    }
    table.entries[i].x = words[0];
    table.entries[i].y = words[1];
  }
  return table;
}

static __device__ const Iq2Table kIq2Table = make_iq2_table();

/// Both have four bits for each of eight values. Of a grid entry: which of 8, 25 and 43 a value is.
/// Of a sign index: its sign, in bit 2. Selectors | signs chooses among 8, 25, 43 and, four
/// further, their negatives.
struct Iq2Codes {
  uint32_t selectors[256];
  uint32_t signs[128];
};

constexpr Iq2Codes make_iq2_codes() {
  Iq2Codes codes = {};
  for (size_t i = 0; i < 256; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      const uint32_t value = kIq2XxsGrid[i][j];
      codes.selectors[i] |= (value == 8 ? 0U : value == 25 ? 1U : 2U) << (4 * j);
    }
  }
  for (uint32_t i = 0; i < 128; ++i) {
    uint32_t parity = 0;
    for (uint32_t j = 0; j < 7; ++j) {
      const uint32_t sign = (i >> j) & 1U;
      codes.signs[i] |= sign << (4 * j + 2);
      parity ^= sign;
    }
    codes.signs[i] |= parity << 30;
  }
  return codes;
}

static __device__ const Iq2Codes kIq2Codes = make_iq2_codes();

}  // namespace tandem::cuda
