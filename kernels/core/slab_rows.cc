#include "kernels/core/slab_rows.h"

#include "model/formats/dequantize.h"
#include "model/formats/quantize.h"

namespace tandem {

void load_slab_row(const SlabView& slab, int64_t bank, int64_t idx, float* out) {
  dequantize_row(slab.dtype, slab.row(bank, idx), slab.row_values, out);
}

void store_slab_row(const SlabView& slab, int64_t bank, int64_t idx, const float* values) {
  quantize_row(slab.dtype, values, slab.row_values, slab.row(bank, idx));
}

}  // namespace tandem
