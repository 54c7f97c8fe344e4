#include "tests/support/rounded.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "tests/support/naive_math.h"

namespace tandem::test {
namespace {

struct Group {
  std::span<const float> actual;
  std::span<const double> unrounded;
  double floor;
  const std::vector<double>& codes;
};

/// Empty if the group can be a rounding with the scale 2^k, else what is wrong.
std::string misfit(const Group& group, const RoundedRow& row, int k) {
  const double scale = std::ldexp(1.0, k);
  const double top = group.codes.back();
  const auto round = [&](double x) {
    return naive::round_to_codes(std::clamp(x / scale, -top, top), group.codes) * scale;
  };
  for (size_t i = 0; i < group.actual.size(); ++i) {
    const double low = round(group.unrounded[i] - row.tolerance);
    const double high = round(group.unrounded[i] + row.tolerance);
    const double slack = row.storage_unit * std::max(std::fabs(low), std::fabs(high));
    const double value = group.actual[i];
    if (!(value >= low - slack && value <= high + slack)) {
      return str_cat(
          "value ", i, " of the group is ", value, ", expected ", low, " to ", high, " from ",
          group.unrounded[i], " with the scale 2^", k);
    }
  }
  return {};
}

std::string group_misfit(const Group& group, const RoundedRow& row) {
  double largest = 0;
  for (const double v : group.unrounded) largest = std::max(largest, std::fabs(v));
  const double top = group.codes.back();
  const int k_low = naive::ceil_log2(std::max(group.floor, largest - row.tolerance) / top);
  const int k_high = naive::ceil_log2(std::max(group.floor, largest + row.tolerance) / top);
  std::string problem;
  for (int k = k_low; k <= k_high; ++k) {
    problem = misfit(group, row, k);
    if (problem.empty()) return {};
  }
  return problem;
}

}  // namespace

::testing::AssertionResult is_rounding_of(std::span<const float> actual, const RoundedRow& row) {
  const size_t n = row.unrounded.size();
  if (actual.size() != n) return ::testing::AssertionFailure() << "a row of " << actual.size();
  size_t num_rounded = 0;
  size_t group_size = 1;
  if (row.rounding == RowRounding::kFp8) {
    num_rounded = static_cast<size_t>(row.num_rounded);
    group_size = 64;
  } else if (row.rounding == RowRounding::kHadamardFp4) {
    num_rounded = n;
    group_size = 32;
  }
  const bool fp8 = row.rounding == RowRounding::kFp8;
  const std::span<const double> unrounded(row.unrounded);
  for (size_t begin = 0; begin < num_rounded; begin += group_size) {
    const Group group{
        actual.subspan(begin, group_size), unrounded.subspan(begin, group_size),
        fp8 ? 1e-4 : 6 * 0x1p-126, fp8 ? naive::e4m3_codes() : naive::e2m1_codes()};
    const std::string problem = group_misfit(group, row);
    if (!problem.empty()) {
      return ::testing::AssertionFailure() << "group at " << begin << ": " << problem;
    }
  }
  for (size_t i = num_rounded; i < n; ++i) {
    const double bound = row.tolerance + row.storage_unit * std::fabs(unrounded[i]);
    if (!(std::fabs(actual[i] - unrounded[i]) <= bound)) {
      return ::testing::AssertionFailure() << "value " << i << " is " << actual[i] << ", expected "
                                           << unrounded[i] << ", bound " << bound;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tandem::test
