#include "tests/support/weights.h"

#include <cstring>

#include "model/formats/blocks.h"
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

namespace {

/// Storing values as IQ2_XXS searches a codebook; any bits are good blocks, though.
HostWeight random_iq2_xxs(int64_t rows, int64_t cols, uint64_t seed, float deviation) {
  HostWeight out;
  out.dtype = DType::kIQ2_XXS;
  out.rows = rows;
  out.cols = cols;
  const int64_t bytes = row_bytes(out.dtype, cols);
  out.bytes.resize(static_cast<size_t>(bytes * rows));
  Normal bits(seed);
  // A value is d (2 z + 1) / 8 times 8, 25 or 43, with z from 0 to 15: about 50 d.
  const uint16_t d = f32_to_f16(deviation / 50);
  for (size_t block = 0; block < out.bytes.size(); block += block_bytes(out.dtype)) {
    std::memcpy(&out.bytes[block], &d, sizeof(d));
    for (int i = sizeof(d); i < block_bytes(out.dtype); ++i) {
      out.bytes[block + static_cast<size_t>(i)] = static_cast<std::byte>(bits.next_bits() >> 24);
    }
  }
  Tensor held(rows, cols);
  for (int64_t r = 0; r < rows; ++r) {
    dequantize_row(out.dtype, out.bytes.data() + r * bytes, cols, held.row(r));
  }
  out.values = widen(held);
  return out;
}

}  // namespace

HostWeight random_weight(DType dtype, int64_t rows, int64_t cols, uint64_t seed, float deviation) {
  if (dtype == DType::kIQ2_XXS) return random_iq2_xxs(rows, cols, seed, deviation);
  return make_weight(dtype, random_tensor(rows, cols, seed, deviation));
}

}  // namespace tandem::test
