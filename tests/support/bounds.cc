#include "tests/support/bounds.h"

#include <algorithm>
#include <cmath>

namespace tandem::test {
namespace {

/// How far value j of x may be from what the operation multiplies with, on the fast paths.
std::vector<double> activation_error(std::span<const double> x, DType dtype) {
  constexpr double kBf16Unit = 0x1p-8;
  std::vector<double> out(x.size());
  // x and the weight are both rounded.
  for (size_t j = 0; j < x.size(); ++j) out[j] = 2.1 * kBf16Unit * std::fabs(x[j]);
  const auto block = static_cast<size_t>(block_values(dtype));
  if (block == 1) return out;
  for (size_t begin = 0; begin < x.size(); begin += block) {
    const size_t end = std::min(x.size(), begin + block);
    double largest = 0;
    for (size_t j = begin; j < end; ++j) largest = std::max(largest, std::fabs(x[j]));
    for (size_t j = begin; j < end; ++j) out[j] = std::max(out[j], largest / 250.0);
  }
  return out;
}

}  // namespace

Tensor64 linear_bound(const Backend& backend, const Tensor64& x, const HostWeight& weight) {
  Tensor64 out(x.rows, weight.rows);
  const auto k = static_cast<size_t>(x.cols);
  for (int64_t t = 0; t < x.rows; ++t) {
    std::vector<double> rounding(k);
    if (!backend.exact()) rounding = activation_error({x.row(t), k}, weight.dtype);
    for (int64_t i = 0; i < weight.rows; ++i) {
      double sum = 0;
      for (size_t j = 0; j < k; ++j) {
        const double w = std::fabs(weight.values.row(i)[j]);
        sum += w * (static_cast<double>(k + 2) * kF32Unit * std::fabs(x.row(t)[j]) + rounding[j]);
      }
      out.at(t, i) = sum + 1e-30;
    }
  }
  return out;
}

double chain_bound(const Backend& backend, int num_linears, int64_t terms) {
  const double f32 = 8 * std::sqrt(static_cast<double>(terms) + 16) * kF32Unit * (num_linears + 1);
  return backend.exact() ? f32 : f32 + 0.021 * num_linears;
}

}  // namespace tandem::test
