#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/status.h"
#include "kernels/core/views.h"
#include "model/spec/tensor_plan.h"

namespace tandem {

/// Where the weights of a stage on a device come from. Threads: one owner.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// How the tensor of that plan index is stored; nothing: there is none.
  virtual std::optional<DType> dtype(size_t plan_idx) const = 0;

  /// Starts to fill `to`, the device form of that tensor. Complete after finish().
  virtual Status fill(size_t plan_idx, const ExpertWeightView& to) = 0;

  virtual Status finish() = 0;
};

}  // namespace tandem
