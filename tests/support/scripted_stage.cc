#include "tests/support/scripted_stage.h"

#include <algorithm>
#include <thread>

namespace tandem::test {

ScriptedStage::ScriptedStage(std::shared_ptr<const Tokenizer> tokenizer, const Options& options)
    : tokenizer_(std::move(tokenizer)), options_(options) {
  info_.range = {0, 1, true, true};
  info_.boundary_width = 1;
  info_.vocab_size = tokenizer_->size();
  info_.num_banks = options_.num_banks;
  info_.context_tokens = options_.context_tokens;
  info_.max_rows = options_.max_rows;
  end_of_turn_ = tokenizer_->special_id(options_.end_of_turn).value_or(0);
  banks_.resize(static_cast<size_t>(options_.num_banks));
}

void ScriptedStage::script(std::vector<ScriptedAnswer> answers) {
  std::vector<std::shared_ptr<const Line>> lines;
  for (ScriptedAnswer& answer : answers) {
    auto line = std::make_shared<Line>();
    TANDEM_CHECK(tokenizer_->encode_raw(answer.say, line->tokens).ok());
    if (!answer.endless) line->tokens.push_back(end_of_turn_);
    line->answer = std::move(answer);
    lines.push_back(std::move(line));
  }
  const std::lock_guard lock(script_mutex_);
  script_ = std::move(lines);
}

std::shared_ptr<const ScriptedStage::Line> ScriptedStage::choose(
    const std::vector<int32_t>& prompt) {
  const std::string text = tokenizer_->decode(prompt, false);
  const std::lock_guard lock(script_mutex_);
  std::shared_ptr<const Line> found;
  for (const auto& line : script_) {
    if (text.find(line->answer.when) != std::string::npos) found = line;
  }
  return found;
}

std::vector<std::string> ScriptedStage::prompts() const {
  const std::lock_guard lock(script_mutex_);
  return prompts_;
}

Result<int32_t> ScriptedStage::next_token(Bank& bank) {
  const auto said = [&] { return bank.tokens.size() - bank.prompt_size; };
  const auto follows = [&] {
    if (bank.line == nullptr || bank.tokens.size() <= bank.prompt_size) return false;
    const auto& tokens = bank.line->tokens;
    return bank.tokens.back() == tokens[(said() - 1) % tokens.size()];
  };
  if (!follows()) {
    bank.line = choose(bank.tokens);
    bank.prompt_size = bank.tokens.size();
    const std::lock_guard lock(script_mutex_);
    prompts_.push_back(tokenizer_->decode(bank.tokens, false));
  }
  if (bank.line == nullptr || bank.line->tokens.empty()) return end_of_turn_;
  if (static_cast<int64_t>(said()) == bank.line->answer.fail_at) {
    return Status(StatusCode::kInternal, "the script says that this step fails");
  }
  std::this_thread::sleep_for(bank.line->answer.token_delay);
  const auto& tokens = bank.line->tokens;
  if (said() >= tokens.size() && !bank.line->answer.endless) return end_of_turn_;
  return tokens[said() % tokens.size()];
}

Status ScriptedStage::submit(const WorkItem& item) {
  const auto& rows = item.batch->rows;
  const int64_t vocab_size = info_.vocab_size;
  logits_.clear();
  ++num_steps_;
  num_rows_ += static_cast<int64_t>(rows.size());
  std::chrono::milliseconds prompt_delay{0};
  for (size_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
    Bank& bank = banks_[static_cast<size_t>(row.bank)];
    TANDEM_REQUIRE(row.pos == static_cast<int32_t>(bank.tokens.size()), "rows leave a gap");
    bank.tokens.push_back(row.token);
    const bool in_prompt = !row.wants_logits || (i > 0 && rows[i - 1].bank == row.bank);
    if (in_prompt && prompt_delay.count() == 0) {
      if (const auto line = choose(bank.tokens)) prompt_delay = line->answer.prompt_delay;
    }
    if (!row.wants_logits) continue;
    TANDEM_TRY_ASSIGN(const int32_t token, next_token(bank));
    const size_t used = logits_.size();
    logits_.resize(used + static_cast<size_t>(vocab_size), -40.0f);
    logits_[used + static_cast<size_t>(token)] = 40.0f;
  }
  std::this_thread::sleep_for(prompt_delay);
  result_ = {};
  result_.logits = {
      logits_.data(), static_cast<int64_t>(logits_.size()) / vocab_size, vocab_size, vocab_size};
  return {};
}

Status ScriptedStage::truncate(int64_t bank, int64_t length) {
  banks_[bank].tokens.resize(std::min(banks_[bank].tokens.size(), static_cast<size_t>(length)));
  banks_[bank].line = nullptr;
  return {};
}

Status ScriptedStage::fork(int64_t from, int64_t to) {
  banks_[to] = banks_[from];
  return {};
}

Result<CheckpointId> ScriptedStage::checkpoint(int64_t bank) {
  checkpoints_.push_back(banks_[bank].tokens);
  return static_cast<CheckpointId>(checkpoints_.size() - 1);
}

Status ScriptedStage::restore(int64_t bank, CheckpointId id) {
  banks_[bank].tokens = checkpoints_[static_cast<size_t>(id)];
  banks_[bank].line = nullptr;
  return {};
}

}  // namespace tandem::test
