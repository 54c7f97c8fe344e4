#include "tests/support/naive_math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace tandem::test::naive {
namespace {

/// Values of a sign-less float with `mantissa_bits` and an exponent bias, codes 0 ... last.
std::vector<double> enumerate_codes(int mantissa_bits, int bias, int last) {
  std::vector<double> out;
  for (int code = 0; code <= last; ++code) {
    const int exponent = code >> mantissa_bits;
    const double mantissa =
        static_cast<double>(code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits);
    out.push_back(
        exponent == 0 ? std::ldexp(mantissa, 1 - bias)
                      : std::ldexp(1.0 + mantissa, exponent - bias));
  }
  return out;
}

void round_groups(
    std::span<double> x, int64_t group, double floor, const std::vector<double>& codes) {
  const double top = codes.back();
  for (size_t begin = 0; begin < x.size(); begin += static_cast<size_t>(group)) {
    const std::span<double> part = x.subspan(begin, static_cast<size_t>(group));
    double largest = floor;
    for (const double v : part) largest = std::max(largest, std::fabs(v));
    const double scale = std::ldexp(1.0, ceil_log2(largest / top));
    for (double& v : part) v = round_to_codes(std::clamp(v / scale, -top, top), codes) * scale;
  }
}

}  // namespace

const std::vector<double>& e4m3_codes() {
  static const std::vector<double> codes = enumerate_codes(3, 7, 126);
  return codes;
}

const std::vector<double>& e2m1_codes() {
  static const std::vector<double> codes = enumerate_codes(1, 1, 7);
  return codes;
}

double round_to_codes(double x, const std::vector<double>& codes) {
  const double magnitude = std::fabs(x);
  size_t best = 0;
  for (size_t code = 1; code < codes.size(); ++code) {
    const double here = std::fabs(codes[code] - magnitude);
    const double before = std::fabs(codes[best] - magnitude);
    if (here < before || (here == before && code % 2 == 0)) best = code;
  }
  return std::copysign(codes[best], x);
}

int ceil_log2(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // x = fraction * 2^exponent, in [0.5, 1)
  return fraction == 0.5 ? exponent - 1 : exponent;
}

void round_fp8(std::span<double> x, int64_t group) {
  round_groups(x, group, 1e-4, e4m3_codes());
}

void round_fp4(std::span<double> x, int64_t group) {
  round_groups(x, group, 6.0 * std::ldexp(1.0, -126), e2m1_codes());
}

double inverse_rms(std::span<const double> x, double eps) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return 1.0 / std::sqrt(sum / static_cast<double>(x.size()) + eps);
}

Vector rms_norm(std::span<const double> x, std::span<const float> weight, double eps) {
  const double scale = inverse_rms(x, eps);
  Vector out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * static_cast<double>(weight[i]);
  return out;
}

void rotate(std::span<double> x, std::span<const float> frequencies, int64_t pos, bool inverse) {
  const std::span<double> tail = x.last(2 * frequencies.size());
  for (size_t i = 0; i < frequencies.size(); ++i) {
    // The specification forms the angle in float32.
    const auto angle = static_cast<double>(static_cast<float>(pos) * frequencies[i]);
    const double c = std::cos(angle);
    const double s = inverse ? -std::sin(angle) : std::sin(angle);
    const double a = tail[2 * i];
    const double b = tail[2 * i + 1];
    tail[2 * i] = a * c - b * s;
    tail[2 * i + 1] = a * s + b * c;
  }
}

void hadamard(std::span<double> x) {
  const Vector in(x.begin(), x.end());
  const double scale = 1.0 / std::sqrt(static_cast<double>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) sum += std::popcount(i & j) % 2 == 0 ? in[j] : -in[j];
    x[i] = sum * scale;
  }
}

double softplus(double z) {
  return z > 40 ? z : std::log1p(std::exp(z));
}

double sigmoid(double z) {
  return 1.0 / (1.0 + std::exp(-z));
}

std::vector<float> plain_frequencies(double base, int64_t dim) {
  std::vector<float> out;
  for (int64_t i = 0; i < dim / 2; ++i) {
    out.push_back(static_cast<float>(
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dim))));
  }
  return out;
}

std::vector<float> yarn_frequencies(
    double base, int64_t dim, double factor, double original_context, double beta_fast,
    double beta_slow) {
  const auto d = static_cast<double>(dim);
  const auto turns = [&](double beta) {
    return d * std::log(original_context / (beta * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  const double lo = std::max(0.0, std::floor(turns(beta_fast)));
  double hi = std::min(d - 1, std::ceil(turns(beta_slow)));
  if (lo == hi) hi += 0.001;
  std::vector<float> out;
  for (int64_t i = 0; i < dim / 2; ++i) {
    const double b = std::pow(base, -2.0 * static_cast<double>(i) / d);
    const double ramp = std::clamp((static_cast<double>(i) - lo) / (hi - lo), 0.0, 1.0);
    out.push_back(static_cast<float>(b / factor * ramp + b * (1 - ramp)));
  }
  return out;
}

Vector linear(std::span<const double> x, const Tensor64& weight) {
  Vector out(static_cast<size_t>(weight.rows));
  for (int64_t i = 0; i < weight.rows; ++i) {
    const double* row = weight.row(i);
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) sum += row[j] * x[j];
    out[static_cast<size_t>(i)] = sum;
  }
  return out;
}

Tensor64 linear(const Tensor64& x, const Tensor64& weight) {
  Tensor64 out(x.rows, weight.rows);
  for (int64_t t = 0; t < x.rows; ++t) {
    const Vector row = linear({x.row(t), static_cast<size_t>(x.cols)}, weight);
    std::copy(row.begin(), row.end(), out.row(t));
  }
  return out;
}

}  // namespace tandem::test::naive
