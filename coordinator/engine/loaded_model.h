#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "base/thread_pool.h"
#include "coordinator/engine/pipeline.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "model/gguf/gguf_file.h"
#include "model/spec/model.h"
#include "worker/cuda_stage.h"
#include "worker/local_stage.h"

namespace tandem {

/// A model file with everything the coordinator needs of it. Immutable once loaded.
struct LoadedModel {
  std::shared_ptr<const GgufFile> file;
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<PromptProtocol> protocol;
};

/// Errors: those of GgufFile::open, open_model and the tokenizer; kInvalidArgument if the
/// vocabulary and the model differ in size. Cost: milliseconds and no copy of the weights.
Result<LoadedModel> load_model(const std::string& path);

/// The whole model as one local stage. `pool` outlives the pipeline.
Result<Pipeline> make_local_pipeline(
    const LoadedModel& loaded, const LocalStageOptions& options, ThreadPool& pool);

/// The whole model as one stage on a GPU.
Result<Pipeline> make_cuda_pipeline(const LoadedModel& loaded, const CudaStageOptions& options);

}  // namespace tandem
