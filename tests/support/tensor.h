#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/random.h"

namespace tandem::test {

/// A [rows, cols] array in host memory.
template <class T>
struct Array {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<T> values;

  Array() = default;
  Array(int64_t num_rows, int64_t num_cols)
      : rows(num_rows), cols(num_cols), values(static_cast<size_t>(num_rows * num_cols)) {}
  Array(int64_t num_rows, int64_t num_cols, std::initializer_list<T> list)
      : rows(num_rows), cols(num_cols), values(list) {}

  T* row(int64_t idx) { return values.data() + idx * cols; }
  const T* row(int64_t idx) const { return values.data() + idx * cols; }
  T& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * cols + c)]; }
  const T& at(int64_t r, int64_t c) const { return values[static_cast<size_t>(r * cols + c)]; }
};
using Tensor = Array<float>;
using IntTensor = Array<int32_t>;
using Tensor64 = Array<double>;  // what a reference computes

/// Standard normal values from one seed.
class Normal {
 public:
  explicit Normal(uint64_t seed);
  float next();
  uint32_t next_bits() { return static_cast<uint32_t>(rng_.next() >> 32); }

 private:
  Rng rng_;
};

/// Normal values of standard deviation `deviation`; the same seed gives the same values.
Tensor random_tensor(int64_t rows, int64_t cols, uint64_t seed, float deviation = 1.0f);

/// mean + deviation * normal, for norms, biases and scales.
std::vector<float> random_vector(int64_t size, uint64_t seed, float mean, float deviation);

Tensor64 widen(const Tensor& tensor);
/// Rounds each value to float32.
Tensor narrow(const Tensor64& tensor);

}  // namespace tandem::test
