#pragma once

#include <cstddef>
#include <cstdint>

#include "model/formats/dtype.h"

namespace tandem {

/// Stores a row of floats as `dtype`: plain rounding to the nearest code, no importance weights.
/// F32, F16, BF16, Q8_0 and I32 are the nearest representable values (Q8_0 for its scale); the
/// K-quants and MXFP4 derive each scale from the sub-block's range; IQ2_XXS searches the codebook.
///
/// Shapes: in holds cols floats; out takes row_bytes(dtype, cols) bytes at any alignment.
/// Limits: cols >= 0 and a multiple of block_values(dtype); values are finite and, for a type with
///         an f16 scale, below 65504 in magnitude.
/// Threads: any.
/// Cost: a few operations a value; IQ2_XXS about a thousand.
void quantize_row(DType dtype, const float* in, int64_t cols, std::byte* out);

}  // namespace tandem
