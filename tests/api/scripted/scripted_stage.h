#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/api/scripted/script.h"
#include "tests/support/step_gate.h"
#include "worker/stage_executor.h"

namespace tandem::test {

struct ScriptedStageOptions {
  int64_t num_banks = 4;
  int64_t context_tokens = 131072;
  int64_t max_rows = 512;                         // of one step
  std::chrono::microseconds step_time{0};         // that a step pretends to take
  std::chrono::microseconds prompt_step_time{0};  // and one that reads a part of a prompt, besides
};

/// A whole model without weights: after any tokens, the script's next token is certain. What the
/// layers of a real model keep for a sequence is here its tokens, so resets, forks, checkpoints and
/// saved states behave as with a real one.
/// Threads: one owner, except what says otherwise.
class ScriptedStage final : public StageExecutor {
 public:
  ScriptedStage(Script script, const ScriptedStageOptions& options);

  /// Replaces the script; answers that begin later follow it. Threads: any.
  void script(Script script);
  /// Every prompt that was answered, as text, oldest first. Threads: any.
  std::vector<std::string> prompts() const;
  /// Threads: any.
  StepGate& gate() { return gate_; }

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
  struct Bank {
    Tokens tokens;
    // Where the last token stood in a script, so that the next need not search for it.
    std::shared_ptr<const Script> script;
    Script::Part part;
    int32_t said = -1;
  };

  Status check(const StepBatch& batch) const;
  /// Takes the batch's tokens in and appends what is likely after them to `next`. Returns how long
  /// the step is to take.
  Result<std::chrono::microseconds> play(const StepBatch& batch, std::vector<int32_t>& next);
  /// The one likely token after what the bank holds; raises `delay` to what it takes.
  Result<int32_t> next_token(Bank& bank, std::chrono::microseconds& delay);

  StageInfo info_;
  const ScriptedStageOptions options_;
  std::vector<Bank> banks_;
  std::map<CheckpointId, Tokens> checkpoints_;
  CheckpointId next_checkpoint_ = 1;
  std::vector<float> logits_;
  std::vector<int32_t> certain_;  // the one token of each row of logits_ that is likely
  bool has_result_ = false;
  StepGate gate_;

  mutable std::mutex mutex_;  // of what follows
  std::shared_ptr<const Script> script_;
  std::vector<std::string> prompts_;
};

}  // namespace tandem::test
