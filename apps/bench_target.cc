#include "apps/bench_target.h"

#include "apps/terminal.h"
#include "worker/cuda_stage.h"
#include "worker/synthetic_weights.h"

namespace tandem {

Result<std::unique_ptr<BenchTarget>> BenchTarget::create(const BenchTargetOptions& options) {
  std::unique_ptr<BenchTarget> target(new BenchTarget);
  TANDEM_REQUIRE(
      options.layers == 0 || !options.synthetic.empty(),
      "--layers is of a made-up model: name one with --synthetic");
  TANDEM_TRY(
      options.synthetic.empty() ? target->load_file(options) : target->load_synthetic(options));
  return target;
}

Status BenchTarget::load_synthetic(const BenchTargetOptions& options) {
  TANDEM_REQUIRE(
      options.runtime.model.empty(), "--model and --synthetic exclude each other: name one");
  TANDEM_TRY_ASSIGN(
      const SyntheticModel synthetic, make_synthetic_model(options.synthetic, options.layers));
  RuntimeOptions runtime = options.runtime;
  runtime.device = "cuda";  // the weights are made in device memory
  TANDEM_TRY(wants_cuda(runtime).status());
  runtime.context_tokens = options.context_tokens;
  TANDEM_TRY(cuda::use_device(0));
  TANDEM_TRY_ASSIGN(
      const auto source, SyntheticWeightSource::create(synthetic.model->tensors(), synthetic.mix));
  Terminal err(stderr);
  CudaStageOptions cuda = cuda_stage_options(runtime, synthetic.model->spec(), err);
  auto stage =
      CudaStage::create(synthetic.model, *source, whole_model(synthetic.model->spec()), cuda);
  err.clear_progress();
  TANDEM_TRY(stage.status());
  stage_ = std::move(stage).value();
  return {};
}

Status BenchTarget::load_file(const BenchTargetOptions& options) {
  TANDEM_TRY_ASSIGN(const std::string path, resolve_model_path(options.runtime.model));
  TANDEM_TRY_ASSIGN(loaded_, load_model(path));
  TANDEM_TRY_ASSIGN(const bool on_gpu, wants_cuda(options.runtime));
  RuntimeOptions runtime = options.runtime;
  runtime.context_tokens = options.context_tokens;
  const ModelSpec& spec = loaded_->model->spec();
  if (on_gpu) {
    Terminal err(stderr);
    auto stage = CudaStage::create(
        loaded_->model, *loaded_->file, whole_model(spec), cuda_stage_options(runtime, spec, err));
    err.clear_progress();
    TANDEM_TRY(stage.status());
    stage_ = std::move(stage).value();
    return {};
  }
  pool_.emplace(num_threads_of(runtime));
  TANDEM_TRY_ASSIGN(
      auto stage, LocalStage::create(
                      loaded_->model, loaded_->file, whole_model(spec),
                      cpu_stage_options(runtime, spec), *pool_));
  local_ = stage.get();
  stage_ = std::move(stage);
  return {};
}

}  // namespace tandem
