#pragma once

#include <cstddef>
#include <cstdint>

#include "model/formats/dtype.h"

namespace tandem::cpu {

/// 256 values of a K-quant or IQ2_XXS as integers: value i is
/// d * scales[i / 16] * (code_i - zero) - dmin * mins[i / 16].
struct BlockCodes256 {
  uint8_t codes[256];
  int16_t scales[16];
  int16_t mins[16];
  float d;
  float dmin;
};

/// 32 values of Q8_0 or MXFP4: value i is d * values[i].
struct BlockCodes32 {
  int8_t values[32];
  float d;
};

void expand_codes(DType dtype, const std::byte* block, BlockCodes256& out);
void expand_codes(DType dtype, const std::byte* block, BlockCodes32& out);

}  // namespace tandem::cpu
