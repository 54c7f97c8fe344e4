#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "tests/api/scripted/script.h"
#include "worker/stage_executor.h"

namespace tandem::test {

struct ScriptedStageOptions {
  int64_t num_banks = 4;
  int64_t context_tokens = 131072;
  int64_t max_rows = 512;                  // of one step
  std::chrono::microseconds step_time{0};  // that a step pretends to take
};

/// A whole model without weights: after any tokens, the script's next token is certain. What the
/// layers of a real model keep for a sequence is here its tokens, so resets, forks, checkpoints and
/// saved states behave as with a real one.
/// Threads: one owner.
class ScriptedStage final : public StageExecutor {
 public:
  ScriptedStage(Script script, const ScriptedStageOptions& options);

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
  using Tokens = std::vector<int32_t>;

  Script script_;
  StageInfo info_;
  std::chrono::microseconds step_time_;
  std::vector<Tokens> banks_;
  std::map<CheckpointId, Tokens> checkpoints_;
  CheckpointId next_checkpoint_ = 1;
  std::vector<float> logits_;
  std::vector<int32_t> certain_;  // the one token of each row of logits_ that is likely
  bool has_result_ = false;
};

}  // namespace tandem::test
