#include "model/families/deepseek_v4/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem {
namespace {

double base_frequency(double base, int64_t i, int64_t dim) {
  return std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
}

}  // namespace

std::vector<float> v4_plain_frequencies(const V4Config& config) {
  std::vector<float> out;
  for (int64_t i = 0; i < config.rope_dim / 2; ++i) {
    out.push_back(static_cast<float>(base_frequency(config.rope_base, i, config.rope_dim)));
  }
  return out;
}

std::vector<float> v4_yarn_frequencies(const V4Config& config) {
  const auto dim = static_cast<double>(config.rope_dim);
  const double base = config.compress_rope_base;
  const auto context = static_cast<double>(config.yarn_original_context);
  // The pair whose wavelength turns `beta` times within the original context.
  const auto pair_of = [&](double beta) {
    return dim * std::log(context / (beta * 2.0 * std::numbers::pi)) / (2.0 * std::log(base));
  };
  const double low = std::max(0.0, std::floor(pair_of(config.yarn_beta_fast)));
  double high = std::min(dim - 1.0, std::ceil(pair_of(config.yarn_beta_slow)));
  if (low == high) high += 0.001;

  std::vector<float> out;
  for (int64_t i = 0; i < config.rope_dim / 2; ++i) {
    const double plain = base_frequency(base, i, config.rope_dim);
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    out.push_back(static_cast<float>(plain / config.yarn_factor * ramp + plain * (1.0 - ramp)));
  }
  return out;
}

}  // namespace tandem
