#include "tests/support/near.h"

#include <cmath>

namespace tandem::test {
namespace {

template <class BoundOf>
::testing::AssertionResult compare(
    const Tensor& actual, const Tensor64& expected, const BoundOf& bound_of) {
  if (actual.rows != expected.rows || actual.cols != expected.cols) {
    return ::testing::AssertionFailure()
           << "shape [" << actual.rows << ", " << actual.cols << "], expected [" << expected.rows
           << ", " << expected.cols << "]";
  }
  double worst = -1;
  size_t worst_idx = 0;
  for (size_t i = 0; i < actual.values.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(actual.values[i]) - expected.values[i]);
    const double bound = bound_of(i);
    double factor = bound > 0 ? difference / bound : (difference == 0 ? 0.0 : HUGE_VAL);
    if (std::isnan(factor)) factor = HUGE_VAL;
    if (factor > worst) {
      worst = factor;
      worst_idx = i;
    }
  }
  if (worst <= 1) return ::testing::AssertionSuccess();
  const auto cols = static_cast<size_t>(actual.cols);
  return ::testing::AssertionFailure()
         << "worst element [" << worst_idx / cols << ", " << worst_idx % cols
         << "]: " << actual.values[worst_idx] << ", expected " << expected.values[worst_idx]
         << ", off by "
         << static_cast<double>(actual.values[worst_idx]) - expected.values[worst_idx] << ", bound "
         << bound_of(worst_idx) << " (exceeded " << worst << " times)";
}

}  // namespace

::testing::AssertionResult near_each(
    const Tensor& actual, const Tensor64& expected, const Tensor64& bound) {
  return compare(actual, expected, [&](size_t i) { return bound.values[i]; });
}

::testing::AssertionResult near_all(const Tensor& actual, const Tensor64& expected, double bound) {
  return compare(actual, expected, [&](size_t) { return bound; });
}

::testing::AssertionResult near_rows(const Tensor& actual, const Tensor64& expected, double bound) {
  std::vector<double> element_bound(static_cast<size_t>(expected.rows));
  for (int64_t r = 0; r < expected.rows; ++r) {
    double norm = 0;
    double difference = 0;
    for (int64_t c = 0; c < expected.cols; ++c) {
      norm += expected.at(r, c) * expected.at(r, c);
      if (r >= actual.rows || c >= actual.cols) continue;
      const double d = actual.at(r, c) - expected.at(r, c);
      difference += d * d;
    }
    norm = std::sqrt(norm);
    difference = std::sqrt(difference);
    if (!(difference <= bound * norm)) {
      return ::testing::AssertionFailure()
             << "row " << r << ": relative difference " << difference / norm << ", bound " << bound
             << "; " << compare(actual, expected, [](size_t) { return 0.0; }).message();
    }
    element_bound[static_cast<size_t>(r)] =
        8 * bound * norm / std::sqrt(static_cast<double>(expected.cols));
  }
  return compare(actual, expected, [&](size_t i) {
    return element_bound[i / static_cast<size_t>(expected.cols)];
  });
}

}  // namespace tandem::test
