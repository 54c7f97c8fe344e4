#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coordinator/sampling/candidates.h"

namespace tandem {

/// The weights of all tokens, summed by size class, so that a place in the walk by descending rank
/// is found by ranking one class and not the vocabulary. Eight classes to a power of two; a token
/// of weight 0 is in none.
///
/// Threads: one owner.
class WeightBuckets {
 public:
  /// A place in the walk by descending rank.
  struct Place {
    int32_t id = 0;       // the token there
    double sum_to = 0.0;  // weights up to and with that token
  };

  /// Sums `weights`, each 0 or in [2^-126, 1].
  ///
  /// Cost: one pass; no allocation.
  void fill(std::span<const float> weights);

  /// The first token at which the sum reaches `target`, or the last if none does.
  ///
  /// Shapes: logits, weights [vocab_size], the weights given to fill with at least one above 0.
  /// Cost:   a pass of comparisons, and O(class size). Uses `scratch`, and allocates only if a
  /// class
  ///         exceeds its capacity.
  Place find(
      std::span<const float> logits, std::span<const float> weights, double target,
      std::vector<Candidate>* scratch) const;

 private:
  // Sign 0, eight bits of exponent and three of fraction.
  static constexpr uint32_t kDroppedBits = 20;
  static uint32_t bucket_of(float weight) {
    return std::bit_cast<uint32_t>(weight) >> kDroppedBits;
  }
  static constexpr size_t kNumBuckets = (0x3F800000u >> kDroppedBits) + 1;  // up to that of 1

  std::array<double, kNumBuckets> sums_{};
};

}  // namespace tandem
