#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coordinator/tokenizer/tokenizer.h"
#include "worker/stage_executor.h"

namespace tandem::test {

/// What a scripted model says to a prompt.
struct ScriptedAnswer {
  std::string when;      // occurs in the prompt's text; empty: always
  std::string say;       // spellings of special tokens count as such; the end of turn is added
  bool endless = false;  // says it again and again, without an end
  std::chrono::milliseconds token_delay{0};   // each step takes this long
  std::chrono::milliseconds prompt_delay{0};  // each step of a prompt takes this long
  int64_t fail_at = -1;                       // the step after this many tokens fails
};

/// A stage without a model: its logits make every sampler choose the tokens of a script. All else
/// that a stage does (banks, truncation, checkpoints) it does on token histories.
///
/// The last answer whose `when` occurs in a bank's text is said to it. Threads: one owner, except
/// counters and script().
class ScriptedStage final : public StageExecutor {
 public:
  struct Options {
    int64_t num_banks = 4;
    int64_t context_tokens = 8192;
    int64_t max_rows = 512;
    std::string end_of_turn;
  };
  ScriptedStage(std::shared_ptr<const Tokenizer> tokenizer, const Options& options);

  /// Replaces the script; prompts that come later follow it. Threads: any.
  void script(std::vector<ScriptedAnswer> answers);
  /// Every prompt that was answered, as text, oldest first. Threads: any.
  std::vector<std::string> prompts() const;
  int64_t num_steps() const { return num_steps_; }
  int64_t num_rows() const { return num_rows_; }

  const StageInfo& info() const override { return info_; }
  Status submit(const WorkItem& item) override;
  Result<StageResult> collect() override { return result_; }
  int64_t length(int64_t bank) const override {
    return static_cast<int64_t>(banks_[bank].tokens.size());
  }
  Status reset(int64_t bank) override { return truncate(bank, 0); }
  Status truncate(int64_t bank, int64_t length) override;
  Status fork(int64_t from, int64_t to) override;
  Result<CheckpointId> checkpoint(int64_t bank) override;
  Status restore(int64_t bank, CheckpointId id) override;
  Status drop_checkpoint(CheckpointId) override { return {}; }
  Status save(int64_t, ByteSink&) override { return {StatusCode::kUnimplemented, "scripted"}; }
  Status load(int64_t, ByteSource&) override { return {StatusCode::kUnimplemented, "scripted"}; }

 private:
  struct Line {
    ScriptedAnswer answer;
    std::vector<int32_t> tokens;
  };
  struct Bank {
    std::vector<int32_t> tokens;
    std::shared_ptr<const Line> line;  // being said
    size_t prompt_size = 0;            // tokens before it
  };

  std::shared_ptr<const Line> choose(const std::vector<int32_t>& prompt);
  Result<int32_t> next_token(Bank& bank);

  std::shared_ptr<const Tokenizer> tokenizer_;
  Options options_;
  StageInfo info_;
  int32_t end_of_turn_ = 0;
  std::vector<Bank> banks_;
  std::vector<std::vector<int32_t>> checkpoints_;
  std::vector<float> logits_;
  StageResult result_;
  std::vector<std::string> prompts_;
  mutable std::mutex script_mutex_;
  std::vector<std::shared_ptr<const Line>> script_;
  std::atomic<int64_t> num_steps_{0};
  std::atomic<int64_t> num_rows_{0};
};

}  // namespace tandem::test
