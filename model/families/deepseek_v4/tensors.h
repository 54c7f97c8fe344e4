#pragma once

#include "model/families/deepseek_v4/config.h"
#include "model/spec/tensor_plan.h"

namespace tandem {

/// Every tensor of the model: the embedding, the layers in order, the head. With the spellings of
/// community files as aliases. 1328 tensors for V4 Flash, 1894 for V4 PRO. Draft blocks inside the
/// file are ignored.
/// Shapes: ne order, in a comment where each tensor is listed.
TensorPlan v4_tensor_plan(const V4Config& config);

/// The tensors of a draft (MTP) side file, prefix "mtp.0.": 32. `config` is the main model's.
TensorPlan v4_mtp_tensor_plan(const V4Config& config);

}  // namespace tandem
