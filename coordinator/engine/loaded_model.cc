#include "coordinator/engine/loaded_model.h"

#include "coordinator/tokenizer/gguf_vocabulary.h"
#include "model/families/families.h"

namespace tandem {

Result<LoadedModel> load_model(const std::string& path) {
  LoadedModel out;
  TANDEM_TRY_ASSIGN(GgufFile file, GgufFile::open(path));
  out.file = std::make_shared<const GgufFile>(std::move(file));
  TANDEM_TRY_ASSIGN(out.model, open_model(*out.file));
  TANDEM_TRY_ASSIGN(out.tokenizer, tokenizer_from_gguf(*out.file));
  TANDEM_REQUIRE(
      out.tokenizer->size() == out.model->spec().vocab_size,
      str_cat(
          path, ": the tokenizer has ", out.tokenizer->size(), " tokens, the model ",
          out.model->spec().vocab_size));
  out.protocol = out.model->protocol();
  return out;
}

namespace {

Result<Pipeline> pipeline_of(std::unique_ptr<StageExecutor> stage) {
  std::vector<std::unique_ptr<StageExecutor>> stages;
  stages.push_back(std::move(stage));
  return Pipeline::create(std::move(stages));
}

}  // namespace

Result<Pipeline> make_local_pipeline(
    const LoadedModel& loaded, const LocalStageOptions& options, ThreadPool& pool) {
  TANDEM_TRY_ASSIGN(
      std::unique_ptr<StageExecutor> stage,
      LocalStage::create(
          loaded.model, loaded.file, whole_model(loaded.model->spec()), options, pool));
  return pipeline_of(std::move(stage));
}

Result<Pipeline> make_cuda_pipeline(const LoadedModel& loaded, const CudaStageOptions& options) {
  TANDEM_TRY_ASSIGN(
      std::unique_ptr<StageExecutor> stage,
      CudaStage::create(loaded.model, *loaded.file, whole_model(loaded.model->spec()), options));
  return pipeline_of(std::move(stage));
}

}  // namespace tandem
