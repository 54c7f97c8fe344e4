#pragma once

#include "base/limits.h"
#include "base/status.h"
#include "kernels/core/views.h"

namespace tandem {

// Checks that every operation makes of its arguments, with the values in the message.

template <class T>
Status require_rows(const char* what, const RowsOf<T>& rows, int64_t num_rows, int64_t cols) {
  TANDEM_REQUIRE(
      rows.rows == num_rows && rows.cols == cols && rows.stride >= cols &&
          (rows.data != nullptr || num_rows == 0),
      str_cat(what, " is [", rows.rows, ", ", rows.cols, "], needs [", num_rows, ", ", cols, "]"));
  return {};
}

inline Status require_weight(
    const char* what, const WeightView& weight, int64_t rows, int64_t cols) {
  TANDEM_REQUIRE(
      weight.rows == rows && weight.cols == cols && weight.data != nullptr,
      str_cat(what, " is [", weight.rows, ", ", weight.cols, "], needs [", rows, ", ", cols, "]"));
  return {};
}

inline Status require_vector(const char* what, const VectorView& vector, int64_t size) {
  TANDEM_REQUIRE(
      vector.size == size && vector.data != nullptr,
      str_cat(what, " has ", vector.size, " values, needs ", size));
  return {};
}

inline Status require_slab(const char* what, const SlabView& slab, int64_t row_values) {
  TANDEM_REQUIRE(
      slab.row_values == row_values && slab.capacity_rows > 0 && slab.data != nullptr,
      str_cat(what, " holds rows of ", slab.row_values, " values, needs ", row_values));
  return {};
}

/// The last rotary.dim of `head_dim` values are rotated, as pairs.
inline Status require_rotary(const char* what, const RotaryView& rotary, int64_t head_dim) {
  TANDEM_REQUIRE(
      rotary.dim >= 0 && rotary.dim % 2 == 0 && rotary.dim <= head_dim &&
          (rotary.frequencies != nullptr || rotary.dim == 0),
      str_cat(what, ".dim is ", rotary.dim, ", rows have ", head_dim, " values"));
  return {};
}

inline Status require_step_size(const char* op, int64_t num_rows) {
  TANDEM_REQUIRE(
      num_rows <= kChunkTokensMax,
      str_cat(op, ": ", num_rows, " rows, a step has at most ", kChunkTokensMax));
  return {};
}

}  // namespace tandem
