#pragma once

#include "model/families/deepseek_v4/config.h"

namespace tandem {

/// The published configuration of V4 Flash or V4 PRO, cut to its first `num_layers` layers; 0: all.
/// For models without a file. Limits: variant is not kSmall; num_layers at most the model's.
V4Config v4_published_config(V4Variant variant, int64_t num_layers = 0);

}  // namespace tandem
