#pragma once

#include <cstddef>
#include <cstdint>

#include "model/formats/dtype.h"

namespace tandem {

/// out[i] = value i of a row stored as `dtype`. The scalar reference of every block format.
///
/// Shapes: row holds row_bytes(dtype, cols) bytes at any alignment; out holds cols floats.
/// Limits: cols >= 0 and a multiple of block_values(dtype). I32 values beyond 2^24 are rounded.
/// Threads: any.
void dequantize_row(DType dtype, const std::byte* row, int64_t cols, float* out);

}  // namespace tandem
