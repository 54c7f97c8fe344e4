#pragma once

#include "base/status.h"
#include "model/families/deepseek_v4/config.h"
#include "model/spec/program.h"
#include "model/spec/tensor_plan.h"

namespace tandem {

/// The forward pass of the layers in `range`; slab ids are those of v4_state for the same range.
/// Errors: kInvalidArgument for a range that is empty or outside the model, or whose ends do not
/// match embeds and emits_logits.
Result<Program> v4_program(
    const V4Config& config, const TensorPlan& tensors, const LayerRange& range);

}  // namespace tandem
