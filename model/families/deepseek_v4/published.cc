#include "model/families/deepseek_v4/published.h"

#include <algorithm>

#include "base/check.h"
#include "model/families/deepseek_v4/rules.h"

namespace tandem {

V4Config v4_published_config(V4Variant variant, int64_t num_layers) {
  TANDEM_CHECK(variant != V4Variant::kSmall);
  const bool is_pro = variant == V4Variant::kPro;
  const int64_t layers_max = is_pro ? v4::kProLayers : v4::kFlashLayers;
  TANDEM_CHECK(num_layers >= 0 && num_layers <= layers_max);
  V4Config config;
  config.variant = variant;
  for (const v4::IntRule& rule : v4::int_rules()) {
    if (rule.field != nullptr) config.*rule.field = is_pro ? rule.pro : rule.flash;
  }
  for (const v4::FloatRule& rule : v4::float_rules()) {
    if (rule.field != nullptr) {
      config.*rule.field = static_cast<float>(is_pro ? rule.pro : rule.flash);
    }
  }
  config.swiglu_limit = static_cast<float>(v4::kSwigluLimit);
  config.shared_swiglu_limit = static_cast<float>(v4::kSwigluLimit);
  config.num_layers = num_layers == 0 ? layers_max : num_layers;
  config.num_hash_layers = std::min(config.num_hash_layers, config.num_layers);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    config.compress_ratios.push_back(v4::published_ratio(variant, layer));
  }
  return config;
}

}  // namespace tandem
