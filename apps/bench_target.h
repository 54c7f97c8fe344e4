#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/runtime.h"
#include "worker/local_stage.h"
#include "worker/stage_executor.h"

namespace tandem {

struct BenchTargetOptions {
  RuntimeOptions runtime;
  std::string
      synthetic;       // a made-up model on a GPU instead of a file; see worker/synthetic_weights.h
  int64_t layers = 0;  // of a made-up model: the first ones; 0: all
  int64_t context_tokens = 0;  // to set up
};

/// The stage that `tandem bench` measures, and what it lives on. Threads: one owner.
class BenchTarget {
 public:
  /// Errors: those of loading a model and of the stages; kInvalidArgument for a made-up model that
  /// does not exist, or without a GPU.
  static Result<std::unique_ptr<BenchTarget>> create(const BenchTargetOptions& options);

  StageExecutor& stage() { return *stage_; }
  LocalStage* local() { return local_; }  // the same stage if it runs on the CPU
  ThreadPool& pool() { return *pool_; }
  const LoadedModel* loaded() const { return loaded_.has_value() ? &*loaded_ : nullptr; }

 private:
  BenchTarget() = default;
  Status load_synthetic(const BenchTargetOptions& options);
  Status load_file(const BenchTargetOptions& options);

  std::optional<LoadedModel> loaded_;
  std::optional<ThreadPool> pool_;
  std::unique_ptr<StageExecutor> stage_;
  LocalStage* local_ = nullptr;
};

}  // namespace tandem
