#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "model/formats/row_rounding.h"

namespace tandem::test {

/// What a row of state should be, as far as arithmetic lets one say.
struct RoundedRow {
  std::vector<double> unrounded;  // before the rounding (after the Hadamard transform)
  double tolerance = 0;           // of each unrounded value
  RowRounding rounding = RowRounding::kNone;
  int64_t num_rounded = 0;  // kFp8: the leading values that are rounded
  double storage_unit = 0;  // relative rounding of the type that the row is stored in
};

/// Whether `actual` is the rounding of some row within the tolerance of the unrounded one. Rounding
/// is monotonic, so with a group's scale given each value lies between the roundings of the ends of
/// its interval; the scale is one that some largest value within the tolerance gives.
::testing::AssertionResult is_rounding_of(std::span<const float> actual, const RoundedRow& row);

}  // namespace tandem::test
