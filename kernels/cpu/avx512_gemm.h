#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_kernels.h"

namespace tandem::cpu {

// What kernels_amx.cc takes over from kernels_avx512.cc: rows that do not fill a tile, and types
// whose integer scales are finer than a tile's depth.

void avx512_gemm(
    DType dtype, const std::byte* panel, int64_t num_rows, const Int8Rows& x,
    const int32_t* row_ids, int64_t n, float* out, int64_t out_stride);

}  // namespace tandem::cpu
