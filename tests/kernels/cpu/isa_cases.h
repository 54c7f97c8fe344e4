#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/cpu/cpu_kernels.h"

namespace tandem {

/// Names an instruction set in a test's name.
inline std::string isa_case_name(const ::testing::TestParamInfo<CpuIsa>& info) {
  return cpu_isa_name(info.param);
}

/// Values around [-scale, scale] with a few large ones, as activations have.
inline std::vector<float> random_values(int64_t count, uint64_t seed, float scale = 1.0f) {
  Rng rng(seed);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) {
    x = scale * (2.0f * rng.uniform() - 1.0f);
    if (rng.uniform() < 0.02f) x *= 8.0f;
  }
  return out;
}

}  // namespace tandem
