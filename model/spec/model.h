#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "model/spec/binder.h"
#include "model/spec/program.h"
#include "model/spec/prompt.h"
#include "model/spec/state_plan.h"
#include "model/spec/tensor_plan.h"

namespace tandem {

/// What the rest of the program may know of a model.
struct ModelSpec {
  std::string family;  // "deepseek_v4"
  std::string name;    // general.name of the file, or the family's name
  int32_t num_layers = 0;
  int64_t hidden_dim = 0;
  int64_t num_streams = 1;  // a boundary row is num_streams * hidden_dim values
  int64_t vocab_size = 0;
  int64_t context_tokens_max = 0;
  std::string fingerprint;  // of every hyper-parameter, 16 hex digits
};

/// A validated model: data plus pure functions. Immutable. Threads: any.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelSpec& spec() const = 0;
  virtual const TensorPlan& tensors() const = 0;
  /// Slabs of the layers in `range`; rows are stored as `dtype` (F32, F16 or BF16).
  virtual StatePlan state(const LayerRange& range, DType dtype) const = 0;
  /// Errors: kInvalidArgument for a range outside the model or one that cannot be cut there.
  virtual Result<Program> program(const LayerRange& range) const = 0;
  virtual std::unique_ptr<PromptProtocol> protocol() const = 0;
  /// Checks tensor contents that a kernel trusts (indices). Errors: kDataLoss names the tensor.
  virtual Status check_contents(const TensorTable& tensors) const = 0;
};

/// All layers of a model in one stage.
inline LayerRange whole_model(const ModelSpec& spec) {
  return {0, spec.num_layers, true, true};
}

}  // namespace tandem
