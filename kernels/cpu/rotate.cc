#include "kernels/cpu/rotate.h"

#include "base/check.h"

namespace tandem::cpu {

RotaryAngles::RotaryAngles(const CpuKernels& kernels, RotaryView rotary, int64_t pos)
    : dim_(rotary.dim) {
  TANDEM_CHECK(dim_ <= kRotaryDimMax);
  kernels.f32.rotary_angles(
      rotary.frequencies, dim_ / 2, static_cast<float>(pos), cosines_, sines_);
}

void RotaryAngles::rotate_tail(float* x, int64_t n, bool inverse) const {
  float* tail = x + (n - dim_);
  for (int64_t i = 0; i < dim_ / 2; ++i) {
    const float c = cosines_[i];
    const float s = inverse ? -sines_[i] : sines_[i];
    const float even = tail[2 * i];
    const float odd = tail[2 * i + 1];
    tail[2 * i] = even * c - odd * s;
    tail[2 * i + 1] = even * s + odd * c;
  }
}

}  // namespace tandem::cpu
