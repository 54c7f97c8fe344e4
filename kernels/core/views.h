#pragma once

#include <cstddef>
#include <cstdint>

#include "model/formats/dtype.h"

namespace tandem {

// Views borrow: what they point to outlives the call and, on CUDA, the queued work. Pointers are of
// the memory of the Exec's device.

/// `rows` rows of `cols` values, `stride` values apart. stride >= cols.
template <class T>
struct RowsOf {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  constexpr T* row(int64_t idx) const { return data + idx * stride; }
  // NOLINTNEXTLINE(google-explicit-constructor): as T* becomes const T*
  constexpr operator RowsOf<const T>() const { return {data, rows, cols, stride}; }
};
using Rows = RowsOf<float>;
using ConstRows = RowsOf<const float>;
using IntRows = RowsOf<int32_t>;
using ConstIntRows = RowsOf<const int32_t>;

/// Where the fields of a quantised row lie. kBlocks: as in the file. kPlanes, on a GPU only: each
/// field of all blocks of the row, one field after the other, blocks in order:
///   Q8_0     q (32 bytes a block), d (2)
///   Q2_K     q (64), scales (16), d and dmin (4)
///   IQ2_XXS  q (64, in the order of kernels/linear/iq2_words.cuh), d (2)
///   MXFP4    q (16), e (1)
enum class WeightLayout : uint8_t { kBlocks, kPlanes };

/// W [rows, cols]; y[r] = sum_c W[r, c] * x[c]. rows == 0: absent.
struct WeightView {
  const std::byte* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_bytes = 0;  // from one row to the next; on a GPU a multiple of 16
  WeightLayout layout = WeightLayout::kBlocks;

  constexpr const std::byte* row(int64_t idx) const { return data + idx * row_bytes; }
  constexpr WeightView slice(int64_t begin, int64_t count) const {
    return {row(begin), dtype, count, cols, row_bytes, layout};
  }
};

/// `experts` weights of one shape, `expert_bytes` apart.
struct ExpertWeightView {
  WeightView first;
  int64_t experts = 0;
  int64_t expert_bytes = 0;

  constexpr WeightView expert(int64_t idx) const {
    WeightView weight = first;
    weight.data += idx * expert_bytes;
    return weight;
  }
};

/// A float32 vector of the file: norms, scales, biases, sinks.
struct VectorView {
  const float* data = nullptr;
  int64_t size = 0;
};

/// One slab of all banks. Row r of bank b starts at data + b * bank_bytes + r * row_bytes.
struct SlabView {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  int64_t row_values = 0;
  int64_t row_bytes = 0;
  int64_t bank_bytes = 0;
  int64_t capacity_rows = 0;

  constexpr std::byte* row(int64_t bank, int64_t idx) const {
    return data + bank * bank_bytes + idx * row_bytes;
  }
};

/// Rotation frequencies in radians per position; values are rotated as adjacent pairs.
struct RotaryView {
  const float* frequencies = nullptr;  // [dim / 2]
  int64_t dim = 0;
};

}  // namespace tandem
