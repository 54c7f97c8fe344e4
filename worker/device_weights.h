#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/core/scratch.h"
#include "kernels/cuda/device_weights.h"
#include "model/spec/binder.h"
#include "model/spec/program.h"
#include "worker/weight_source.h"
#include "worker/weight_table.h"

namespace tandem {

/// Bytes filled so far, of how many.
using LoadProgress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

/// The weights of a stage in device memory. Threads: one owner.
class DeviceWeights {
 public:
  /// Takes memory for every tensor of the plan that `range` needs and `source` has, and fills it.
  /// Errors: kResourceExhausted with the bytes that are missing; the source's.
  static Result<DeviceWeights> load(
      const TensorPlan& plan, const LayerRange& range, WeightSource& source, Allocator& allocator,
      const LoadProgress& progress = {});

  const WeightTable& table() const { return table_; }
  int64_t bytes() const { return bytes_; }

 private:
  WeightTable table_;
  std::vector<std::unique_ptr<Memory>> memory_;
  int64_t bytes_ = 0;
};

/// The tensors of a file, uploaded from its mapping.
class FileWeightSource final : public WeightSource {
 public:
  /// `plan` and `tensors` outlive it. Errors: those of cuda::WeightUploader::create.
  static Result<std::unique_ptr<FileWeightSource>> create(
      const TensorPlan& plan, const TensorTable& tensors);

  std::optional<DType> dtype(size_t plan_idx) const override;
  Status fill(size_t plan_idx, const ExpertWeightView& to) override;
  Status finish() override { return uploader_.finish(); }

 private:
  FileWeightSource(
      const TensorPlan& plan, const TensorTable& tensors, cuda::WeightUploader uploader)
      : plan_(plan), tensors_(tensors), uploader_(std::move(uploader)) {}

  const TensorPlan& plan_;
  const TensorTable& tensors_;
  cuda::WeightUploader uploader_;
};

}  // namespace tandem
