#include "coordinator/sampling/logit_scan.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tandem {
namespace {

// Reductions keep this many partial results in a fixed order, which vectorises without letting the
// compiler reorder a sum.
constexpr size_t kLanes = 16;
static_assert(kScanRun % kLanes == 0, "a full run has whole groups of lanes");

// Four floats as a vector type of the compiler: it does not turn a reduction by comparison into one
// by itself.
using Float4 = float __attribute__((vector_size(16)));

inline Float4 load4(const float* from) {
  Float4 value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Rounds to 2^-127, whose exponent field is 0, so the product with it is 0 and needs no branch.
constexpr float kExpFloor = -88.0f;

/// Whether a value is a NaN, which fails every comparison, or plus infinity.
inline uint32_t is_broken(float value) {
  return static_cast<uint32_t>(!(value <= std::numeric_limits<float>::max()));
}

inline float exp_in_range(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // few bits: n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRoundToInt = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * kLog2E + kRoundToInt;
  const float n = shifted - kRoundToInt;
  const float r = (x - n * kLn2High) - n * kLn2Low;  // |r| <= ln(2) / 2
  // Taylor to the seventh power: the first term left out is below 6e-9.
  float poly = 1.0f / 5040.0f;
  poly = poly * r + 1.0f / 720.0f;
  poly = poly * r + 1.0f / 120.0f;
  poly = poly * r + 1.0f / 24.0f;
  poly = poly * r + 1.0f / 6.0f;
  poly = poly * r + 0.5f;
  poly = poly * r + 1.0f;
  poly = poly * r + 1.0f;
  const uint32_t exponent = (std::bit_cast<uint32_t>(shifted) + 127u) << 23;
  return poly * std::bit_cast<float>(exponent);
}

inline float at_least_floor(float x) {
  return x > kExpFloor ? x : kExpFloor;
}

}  // namespace

float exp_weight(float x) {
  return exp_in_range(at_least_floor(x));
}

float run_max(std::span<const float> run) {
  Float4 lanes[kLanes / 4];
  for (Float4& lane : lanes) lane = Float4{} + kMinusInfinity;
  const float* values = run.data();
  size_t i = 0;
  for (; i + kLanes <= run.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes / 4; ++j) {
      const Float4 value = load4(values + i + 4 * j);
      lanes[j] = value > lanes[j] ? value : lanes[j];
    }
  }
  float max = kMinusInfinity;
  for (; i < run.size(); ++i) max = values[i] > max ? values[i] : max;
  for (const Float4& lane : lanes) {
    for (int j = 0; j < 4; ++j) max = lane[j] > max ? lane[j] : max;
  }
  return max;
}

LogitPeak find_peak(std::span<const float> logits) {
  float max = kMinusInfinity;
  size_t max_begin = 0;  // the first run that holds the largest value
  uint32_t broken = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kScanRun) {
    const auto run = logits.subspan(begin, std::min<size_t>(kScanRun, logits.size() - begin));
    const float* values = run.data();
    if (run.size() == kScanRun) {
      for (size_t i = 0; i < kScanRun; ++i) broken |= is_broken(values[i]);
    } else {
      for (const float value : run) broken |= is_broken(value);
    }
    const float candidate = run_max(run);
    if (candidate > max) {
      max = candidate;
      max_begin = begin;
    }
  }
  if (broken != 0 || max == kMinusInfinity) return {};
  size_t i = max_begin;
  while (logits[i] != max) ++i;
  return {max, static_cast<int32_t>(i)};
}

double exp_weights(
    std::span<const float> logits, float peak, float temperature, std::span<float> weights,
    std::span<double> run_sums) {
  double total = 0.0;
  size_t run_idx = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kScanRun, ++run_idx) {
    const size_t size = std::min<size_t>(kScanRun, logits.size() - begin);
    const float* in = logits.data() + begin;
    float* out = weights.data() + begin;
    // Two loops: in one, the constant result at the floor would become a branch, which does not
    // vectorise.
    for (size_t i = 0; i < size; ++i) out[i] = at_least_floor((in[i] - peak) / temperature);
    for (size_t i = 0; i < size; ++i) out[i] = exp_in_range(out[i]);
    float lanes[kLanes] = {};
    size_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      for (size_t j = 0; j < kLanes; ++j) lanes[j] += out[i + j];
    }
    for (; i < size; ++i) lanes[0] += out[i];
    double sum = 0.0;
    for (const float lane : lanes) sum += static_cast<double>(lane);
    run_sums[run_idx] = sum;
    total += sum;
  }
  return total;
}

double log_sum_exp(std::span<const float> logits, float peak) {
  double sum = 0.0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - static_cast<double>(peak));
  }
  return static_cast<double>(peak) + std::log(sum);
}

}  // namespace tandem
