#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/device.h"
#include "model/spec/model.h"
#include "worker/weight_source.h"

namespace tandem {

/// How the routed experts of a made-up model are stored; the rest as in published files.
enum class ExpertMix {
  kQ2,     // IQ2_XXS and Q2_K
  kQ4,     // Q4_K
  kMxfp4,  // MXFP4
};

/// Random weights in device memory, so that speed is measured without a file: finite values of a
/// deviation that keeps activations near one, experts of hash layers evenly spread.
/// Threads: one owner.
class SyntheticWeightSource final : public WeightSource {
 public:
  /// `plan` outlives it.
  static Result<std::unique_ptr<SyntheticWeightSource>> create(
      const TensorPlan& plan, ExpertMix mix);

  std::optional<DType> dtype(size_t plan_idx) const override;
  Status fill(size_t plan_idx, const ExpertWeightView& to) override;
  Status finish() override { return stream_.synchronize(); }

 private:
  SyntheticWeightSource(const TensorPlan& plan, ExpertMix mix, cuda::Stream stream)
      : plan_(plan), mix_(mix), stream_(std::move(stream)) {}
  Status fill_token_experts(const WeightView& to);

  const TensorPlan& plan_;
  ExpertMix mix_;
  cuda::Stream stream_;
  int64_t num_experts_ = 0;  // of the last router seen
};

/// A model by name: "flash-q2", "flash-q4", "flash-mxfp4", "pro-q2", ... with the first
/// `num_layers` layers; 0: all.
struct SyntheticModel {
  std::shared_ptr<const Model> model;
  ExpertMix mix = ExpertMix::kQ2;
};

/// Errors: kInvalidArgument lists the names.
Result<SyntheticModel> make_synthetic_model(std::string_view name, int64_t num_layers);

}  // namespace tandem
