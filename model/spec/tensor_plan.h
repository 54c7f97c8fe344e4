#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/dtype.h"

namespace tandem {

/// Which stages of a pipeline read a tensor.
enum class TensorUse {
  kLayer,      // the stage that has the tensor's layer
  kEmbedding,  // the stage that embeds
  kHead,       // the stage that emits logits
  kIgnored,    // none: `name` is a prefix, and tensors under it are no mistake
};

/// One tensor that a model needs: what it may be called, its sizes and how it may be stored.
struct TensorSpec {
  std::string name;                  // canonical
  std::vector<std::string> aliases;  // other spellings in files
  std::vector<int64_t> dims;         // ne order: dims[0] is contiguous
  std::vector<DType> dtypes;         // accepted; the first is what the published files use
  int layer = -1;                    // -1: belongs to no layer
  bool required = true;
  TensorUse use = TensorUse::kLayer;
  int same_dtype_as = -1;  // index of another tensor of the plan, stored alike; -1: none
};

using TensorPlan = std::vector<TensorSpec>;

/// Index of the tensor with that canonical name, or -1. Cost: linear; not for a hot path.
inline int32_t plan_index(const TensorPlan& plan, std::string_view name) {
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan[i].name == name) return static_cast<int32_t>(i);
  }
  return -1;
}

}  // namespace tandem
