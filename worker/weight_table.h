#pragma once

#include <vector>

#include "base/status.h"
#include "kernels/core/views.h"
#include "model/spec/binder.h"
#include "model/spec/program.h"
#include "model/spec/tensor_plan.h"

namespace tandem {

/// The tensors of a stage as the operations take them, by TensorId. Views borrow the mapping or the
/// device memory that holds them.
class WeightTable {
 public:
  WeightTable() = default;
  explicit WeightTable(size_t num_tensors) : weights_(num_tensors) {}

  /// Absent tensors (kNone) give an empty view.
  WeightView weight(TensorId id) const { return id == kNone ? WeightView{} : weights_[id].first; }
  ExpertWeightView experts(TensorId id) const { return weights_[id]; }
  /// Limits: an F32 tensor.
  VectorView vector(TensorId id) const;

  void set(TensorId id, const ExpertWeightView& view) { weights_[id] = view; }
  size_t size() const { return weights_.size(); }

 private:
  std::vector<ExpertWeightView> weights_;  // experts == 1 for a plain tensor
};

/// Views of a tensor of `dims` (ne order) whose payload starts at `data`: dims[2] experts of
/// dims[1] rows of dims[0] values; missing dimensions are 1.
ExpertWeightView weight_view(const std::byte* data, DType dtype, const std::vector<int64_t>& dims);

/// Views of the bound tensors in the file's own mapping.
WeightTable map_weights(const TensorPlan& plan, const TensorTable& tensors);

}  // namespace tandem
