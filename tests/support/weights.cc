#include "tests/support/weights.h"

#include "model/formats/dequantize.h"
#include "model/formats/quantize.h"

namespace tandem::test {

HostWeight make_weight(DType dtype, const Tensor& values) {
  HostWeight out;
  out.dtype = dtype;
  out.rows = values.rows;
  out.cols = values.cols;
  const int64_t bytes = row_bytes(dtype, values.cols);
  out.bytes.resize(static_cast<size_t>(bytes * values.rows));
  Tensor held(values.rows, values.cols);
  for (int64_t r = 0; r < values.rows; ++r) {
    std::byte* row = out.bytes.data() + r * bytes;
    quantize_row(dtype, values.row(r), values.cols, row);
    dequantize_row(dtype, row, values.cols, held.row(r));
  }
  out.values = widen(held);
  return out;
}

HostWeight random_weight(DType dtype, int64_t rows, int64_t cols, uint64_t seed, float deviation) {
  return make_weight(dtype, random_tensor(rows, cols, seed, deviation));
}

}  // namespace tandem::test
