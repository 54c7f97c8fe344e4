#pragma once

#include <cstdint>

#include "kernels/core/views.h"

namespace tandem {

/// Reads row `idx` of `bank` as float32 into out [row_values].
void load_slab_row(const SlabView& slab, int64_t bank, int64_t idx, float* out);

/// Stores values [row_values], rounded to the slab's dtype (F32, F16 or BF16), as row `idx` of
/// `bank`.
void store_slab_row(const SlabView& slab, int64_t bank, int64_t idx, const float* values);

/// Rounds n values as a slab of `dtype` (F32, F16 or BF16) would hold them.
void round_to_slab(DType dtype, float* values, int64_t n);

}  // namespace tandem
