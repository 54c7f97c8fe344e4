#pragma once

#include <gtest/gtest.h>

#include "tests/support/tensor.h"

namespace tandem::test {

/// Whether every |actual - expected| <= its bound. A failure names the element that exceeds its
/// bound by the largest factor, with both values and the bound. NaN anywhere fails.
::testing::AssertionResult near_each(
    const Tensor& actual, const Tensor64& expected, const Tensor64& bound);

/// The same with one absolute bound.
::testing::AssertionResult near_all(const Tensor& actual, const Tensor64& expected, double bound);

/// Whether, in every row, the Euclidean norm of the difference is at most `bound` times that of
/// the expected row, and no element is off by more than 8 times what an even spread of that
/// difference over the row would give.
::testing::AssertionResult near_rows(const Tensor& actual, const Tensor64& expected, double bound);

}  // namespace tandem::test
