#pragma once

#include <cstdint>

namespace tandem {

/// xorshift64*: the generator of the sampling specification, so that a seed means the same
/// everywhere. Source: Vigna 2016, "An experimental exploration of Marsaglia's xorshift generators,
/// scrambled".
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed == 0 ? 0x9E3779B97F4A7C15ULL : seed) {}

  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  /// In [0, 1): the top 24 bits over 2^24.
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }
  uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace tandem
