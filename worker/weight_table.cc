#include "worker/weight_table.h"

#include "base/check.h"

namespace tandem {

VectorView WeightTable::vector(TensorId id) const {
  if (id == kNone) return {};
  const WeightView& view = weights_[id].first;
  TANDEM_CHECK(view.dtype == DType::kF32);
  return {reinterpret_cast<const float*>(view.data), view.rows * view.cols};
}

ExpertWeightView weight_view(const std::byte* data, DType dtype, const std::vector<int64_t>& dims) {
  const int64_t cols = dims[0];
  const int64_t rows = dims.size() > 1 ? dims[1] : 1;
  const int64_t experts = dims.size() > 2 ? dims[2] : 1;
  const int64_t bytes = row_bytes(dtype, cols);
  return {{data, dtype, rows, cols, bytes}, experts, rows * bytes};
}

WeightTable map_weights(const TensorPlan& plan, const TensorTable& tensors) {
  WeightTable table(plan.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    const TensorInfo* tensor = tensors.find(i);
    if (tensor == nullptr) continue;
    table.set(static_cast<TensorId>(i), weight_view(tensor->data, tensor->dtype, plan[i].dims));
  }
  return table;
}

}  // namespace tandem
