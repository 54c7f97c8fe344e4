#pragma once

#include "kernels/core/views.h"
#include "kernels/cpu/cpu_kernels.h"

namespace tandem::cpu {

inline constexpr int64_t kRotaryDimMax = 512;

/// Cosines and sines of one position, for every head of a row.
class RotaryAngles {
 public:
  RotaryAngles(const CpuKernels& kernels, RotaryView rotary, int64_t pos);

  /// Rotates the last values of x [n] as adjacent pairs; back if `inverse`.
  void rotate_tail(float* x, int64_t n, bool inverse) const;

 private:
  int64_t dim_;
  float cosines_[kRotaryDimMax / 2];
  float sines_[kRotaryDimMax / 2];
};

}  // namespace tandem::cpu
