#pragma once

#include <vector>

#include "model/families/deepseek_v4/config.h"

namespace tandem {

/// Frequencies of the layers without compression: base^(-2 i / dim).
std::vector<float> v4_plain_frequencies(const V4Config& config);

/// Frequencies of the compressed layers: YaRN over compress_rope_base, without magnitude scaling.
/// Source: Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models".
std::vector<float> v4_yarn_frequencies(const V4Config& config);

}  // namespace tandem
