#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_kernels.h"

namespace tandem::cpu {

// A panel: kPanelRows weight rows expanded to one byte a value, so that a blocked product unpacks a
// weight once for many activation rows. It lives in scratch for one product; the file's blocks stay
// the only copy of the weights.
//
// Four consecutive values of one row are adjacent ("a word"), then come the words of the other
// rows: codes[k / 4][kPanelRows][4]. A value is scale * (code - zero) or scale * code - min.

/// 32 values of each row: Q8_0 and MXFP4.
struct PanelBlock32 {
  uint8_t codes[8][kPanelRows][4];
  float d[kPanelRows];
};

/// 256 values of each row of a type with kGroups integer scales a block.
template <int kGroups>
struct PanelBlock256 {
  uint8_t codes[64][kPanelRows][4];
  int32_t scales[kGroups][kPanelRows];
  /// For the pair p of runs of 16 values: what multiplies their activation sums. zero * scale if
  /// the type has a zero point, else the minimum.
  int16_t bias[8][kPanelRows][2];
  float d[kPanelRows];
  float dmin[kPanelRows];
};

/// How a block type maps to integers. Codes are 0..127 except Q8_0's, so they serve as signed and
/// as unsigned bytes.
struct BlockTraits {
  int groups;     // integer scales of a 256-value block; 0 for the 32-value types
  int zero;       // subtracted from a code
  bool has_mins;  // value = d * s * code - dmin * m
};

constexpr BlockTraits block_traits(DType dtype) {
  switch (dtype) {
    case DType::kMXFP4: return {0, 16, false};
    case DType::kQ2_K: return {16, 0, true};
    case DType::kQ4_K: return {8, 0, true};
    case DType::kQ6_K: return {16, 32, false};
    case DType::kIQ2_XXS: return {8, 64, false};
    default: return {0, 0, false};  // Q8_0: its zero is an argument
  }
}

/// The pack entry of every table. q8_zero: what is added to a Q8_0 value to make its code, 128 for
/// instruction sets that multiply unsigned by signed bytes, else 0 (the code is then signed).
void pack_panel(
    DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, int64_t k, int q8_zero,
    std::byte* panel);

}  // namespace tandem::cpu
