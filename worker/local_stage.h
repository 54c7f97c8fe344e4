#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "base/thread_pool.h"
#include "kernels/core/exec.h"
#include "kernels/core/scratch.h"
#include "model/gguf/gguf_file.h"
#include "model/spec/model.h"
#include "worker/executor.h"
#include "worker/op_cost.h"
#include "worker/stage_executor.h"
#include "worker/step_arrays.h"

namespace tandem {

struct LocalStageOptions {
  Numerics numerics = Numerics::kFast;
  DType state_dtype = DType::kF32;  // F32, F16 or BF16
  int64_t num_banks = 1;
  int64_t context_tokens = 8192;
  int64_t rewind_tokens = 64;
  int64_t max_rows = 512;  // of one step, at most kChunkTokensMax
};

/// A range of layers on this machine's CPU, with weights used from the file's mapping.
/// Threads: one owner; the pool may be shared by stages of one owner.
class LocalStage final : public StageExecutor {
 public:
  /// `pool` outlives the stage.
  /// Errors: kInvalidArgument for a tensor that is missing or wrong, or options out of range;
  /// kResourceExhausted if memory is short.
  static Result<std::unique_ptr<LocalStage>> create(
      std::shared_ptr<const Model> model, std::shared_ptr<const GgufFile> file,
      const LayerRange& range, const LocalStageOptions& options, ThreadPool& pool);

  const StageInfo& info() const override { return info_; }
  Status submit(const WorkItem& item) override;
  Result<StageResult> collect() override;
  int64_t length(int64_t bank) const override { return banks_.length(bank); }
  Status reset(int64_t bank) override;
  Status truncate(int64_t bank, int64_t length) override;
  Status fork(int64_t from, int64_t to) override;
  Result<CheckpointId> checkpoint(int64_t bank) override;
  Status restore(int64_t bank, CheckpointId id) override;
  Status drop_checkpoint(CheckpointId id) override;
  Status save(int64_t bank, ByteSink& sink) override;
  Status load(int64_t bank, ByteSource& source) override;

  /// Called before each operation of every later step, and after each step; nullptr: no more.
  void observe(const OpObserver* before_op, const std::function<void()>* after_step = nullptr) {
    observer_ = before_op;
    after_step_ = after_step;
  }
  /// For observers: the rows of the step that runs, and what an operation of it costs.
  StepRows current_step() const { return arrays_.view(); }
  OpCost current_cost(const Op& op) const { return op_cost(op, parts_, arrays_.view()); }

 private:
  LocalStage(
      std::shared_ptr<const Model> model, std::shared_ptr<const GgufFile> file,
      std::unique_ptr<Allocator> allocator, Program program, BankStore banks, ValueTable values,
      const LocalStageOptions& options, ThreadPool& pool);
  Status check_bank(int64_t bank) const;
  /// A logits buffer of at least num_rows rows; grows to the largest step.
  Result<Rows> logits_for(int64_t num_rows);

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const GgufFile> file_;
  std::unique_ptr<Allocator> allocator_;  // of the banks, the values and all that follows
  Scratch scratch_{*allocator_};
  Program program_;
  BankStore banks_;
  ValueTable values_;
  WeightTable weights_;
  StageInfo info_;
  StepArrays arrays_;
  Exec exec_;
  ExecutorParts parts_;
  const OpObserver* observer_ = nullptr;
  const std::function<void()>* after_step_ = nullptr;
  std::unique_ptr<Memory> logits_;
  int64_t logits_rows_ = 0;
  StageResult result_;
  bool has_result_ = false;
};

}  // namespace tandem
