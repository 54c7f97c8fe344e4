#include "kernels/core/slab_rows.h"

#include "base/check.h"
#include "model/formats/blocks.h"
#include "model/formats/dequantize.h"
#include "model/formats/quantize.h"

namespace tandem {

void load_slab_row(const SlabView& slab, int64_t bank, int64_t idx, float* out) {
  dequantize_row(slab.dtype, slab.row(bank, idx), slab.row_values, out);
}

void store_slab_row(const SlabView& slab, int64_t bank, int64_t idx, const float* values) {
  quantize_row(slab.dtype, values, slab.row_values, slab.row(bank, idx));
}

void round_to_slab(DType dtype, float* values, int64_t n) {
  TANDEM_CHECK(dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16);
  if (dtype == DType::kF32) return;
  for (int64_t i = 0; i < n; ++i) {
    values[i] = dtype == DType::kF16 ? f16_to_f32(f32_to_f16(values[i]))
                                     : bf16_to_f32(f32_to_bf16(values[i]));
  }
}

}  // namespace tandem
