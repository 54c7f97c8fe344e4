#pragma once

#include <functional>
#include <map>
#include <vector>

#include "worker/stage_executor.h"

namespace tandem::test {

/// A stage without a model: it remembers the tokens of each bank, holds callers to the contract of
/// StageExecutor, and answers with logits whose peak a function chooses. It fails where it is told.
class FakeStage final : public StageExecutor {
 public:
  explicit FakeStage(const StageInfo& stage_info);

  /// Tokens that a bank holds, after this step, to the token that the logits prefer.
  /// By default the last token plus one.
  std::function<int32_t(std::span<const int32_t> tokens)> next;
  /// Called before a step runs; an error is returned instead of running it.
  std::function<Status(const StepBatch& batch)> before_step;
  /// Called with the name of a bank operation before it; an error is returned instead.
  std::function<Status(const std::string& operation)> before_operation;
  /// Rows of logits too few or too many.
  int64_t logits_rows_offset = 0;
  int64_t rewind_tokens = 4;
  std::vector<StepBatch> steps;  // that ran

  std::span<const int32_t> tokens(int64_t bank) const { return banks_[bank].tokens; }
  size_t num_checkpoints() const { return checkpoints_.size(); }

  const StageInfo& info() const override { return info_; }
  Status submit(const WorkItem& item) override;
  Result<StageResult> collect() override;
  int64_t length(int64_t bank) const override;
  Status reset(int64_t bank) override;
  Status truncate(int64_t bank, int64_t length) override;
  Status fork(int64_t from, int64_t to) override;
  Result<CheckpointId> checkpoint(int64_t bank) override;
  Status restore(int64_t bank, CheckpointId id) override;
  Status drop_checkpoint(CheckpointId id) override;
  Status save(int64_t bank, ByteSink& sink) override;
  Status load(int64_t bank, ByteSource& source) override;

 private:
  struct Bank {
    std::vector<int32_t> tokens;
    int64_t rewind_left = 0;
  };
  struct Checkpoint {
    int64_t bank = 0;
    Bank state;
  };
  Status allowed(const char* operation) const;
  void drop_checkpoints_above(int64_t bank, int64_t length);

  StageInfo info_;
  std::vector<Bank> banks_;
  std::map<CheckpointId, Checkpoint> checkpoints_;
  CheckpointId next_checkpoint_ = 1;
  std::vector<float> logits_;
  std::vector<float> boundary_;
  StageResult result_;
};

/// A stage of all layers.
StageInfo whole_stage_info(
    int64_t vocab_size, int64_t num_banks, int64_t context_tokens, int64_t max_rows);

}  // namespace tandem::test
