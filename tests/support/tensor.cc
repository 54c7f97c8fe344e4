#include "tests/support/tensor.h"

#include <cmath>
#include <numbers>

namespace tandem::test {

// Neighbouring seeds of a xorshift generator start alike; a few steps separate them.
Normal::Normal(uint64_t seed) : rng_(seed * 0x9E3779B97F4A7C15ULL + 1) {
  for (int i = 0; i < 8; ++i) rng_.next();
}

float Normal::next() {
  const double u = 1.0 - static_cast<double>(rng_.uniform());  // in (0, 1]
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(rng_.uniform());
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
}

Tensor random_tensor(int64_t rows, int64_t cols, uint64_t seed, float deviation) {
  Tensor out(rows, cols);
  Normal normal(seed);
  for (float& value : out.values) value = deviation * normal.next();
  return out;
}

std::vector<float> random_vector(int64_t size, uint64_t seed, float mean, float deviation) {
  std::vector<float> out(static_cast<size_t>(size));
  Normal normal(seed);
  for (float& value : out) value = mean + deviation * normal.next();
  return out;
}

Tensor64 widen(const Tensor& tensor) {
  Tensor64 out(tensor.rows, tensor.cols);
  for (size_t i = 0; i < out.values.size(); ++i) out.values[i] = tensor.values[i];
  return out;
}

Tensor narrow(const Tensor64& tensor) {
  Tensor out(tensor.rows, tensor.cols);
  for (size_t i = 0; i < out.values.size(); ++i) {
    out.values[i] = static_cast<float>(tensor.values[i]);
  }
  return out;
}

}  // namespace tandem::test
