#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "model/gguf/gguf_file.h"
#include "model/spec/issue.h"
#include "model/spec/program.h"
#include "model/spec/tensor_plan.h"

namespace tandem {

/// A plan's tensors found in a file. Pointers are valid while the GgufFile lives.
/// Threads: reads from any.
class TensorTable {
 public:
  /// The tensor of that plan index; null if it is optional and absent, or outside the bound range.
  /// Limits: plan_idx < size().
  const TensorInfo* find(size_t plan_idx) const { return tensors_.at(plan_idx); }
  /// The same by canonical name; null also for a name that the plan does not have.
  const TensorInfo* find(std::string_view canonical_name) const;
  size_t size() const { return tensors_.size(); }
  /// Bytes of all bound tensors.
  uint64_t bytes() const;

 private:
  friend class Binder;
  std::vector<const TensorInfo*> tensors_;
  std::unordered_map<std::string, const TensorInfo*> by_name_;
};

/// Matches a plan with a file by name or alias, sizes and type. Trailing sizes of 1 are equal to
/// none. With a `range`, binds only what that stage needs: its layers, the embedding if it embeds,
/// the head if it emits logits; the rest of the plan may be absent from the file.
///
/// Errors: kInvalidArgument that starts with the file's name and lists what is wrong: missing,
///         wrongly shaped, wrongly stored, doubly named and unexpected tensors together. `issues`,
///         if not null, receives the same as data.
/// Cost: linear in the tensors of both.
Result<TensorTable> bind_tensors(
    const TensorPlan& plan, const GgufFile& file, const std::optional<LayerRange>& range = {},
    std::vector<Issue>* issues = nullptr);

}  // namespace tandem
