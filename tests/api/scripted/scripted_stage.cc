#include "tests/api/scripted/scripted_stage.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace tandem::test {
namespace {

constexpr float kUnlikely = -1e4f;  // the exponential is 0, so no temperature draws it

}  // namespace

ScriptedStage::ScriptedStage(Script script, const ScriptedStageOptions& options)
    : options_(options),
      banks_(static_cast<size_t>(options.num_banks)),
      script_(std::make_shared<const Script>(std::move(script))) {
  info_.range = {0, 1};
  info_.boundary_width = 1;
  info_.vocab_size = script_->tokenizer().size();
  info_.num_banks = options.num_banks;
  info_.context_tokens = options.context_tokens;
  info_.max_rows = options.max_rows;
}

void ScriptedStage::script(Script script) {
  const std::lock_guard lock(mutex_);
  script_ = std::make_shared<const Script>(std::move(script));
}

std::vector<std::string> ScriptedStage::prompts() const {
  const std::lock_guard lock(mutex_);
  return prompts_;
}

Status ScriptedStage::check(const StepBatch& batch) const {
  for (const StepRow& row : batch.rows) {
    TANDEM_REQUIRE(row.bank >= 0 && row.bank < info_.num_banks, "no such bank");
    TANDEM_REQUIRE(row.token >= 0 && row.token < info_.vocab_size, "no such token");
    TANDEM_REQUIRE(row.pos < info_.context_tokens, "a row is past the context");
  }
  return {};
}

Result<int32_t> ScriptedStage::next_token(Bank& bank, std::chrono::microseconds& delay) {
  const bool follows = bank.script != nullptr && bank.said == bank.tokens.back();
  if (!follows) {
    const std::lock_guard lock(mutex_);
    bank.script = script_;
    bank.part = script_->find(bank.tokens);
    if (bank.tokens.size() == bank.part.begin) {
      prompts_.push_back(script_->tokenizer().decode(bank.tokens, /*skip_special=*/false));
    }
  }
  const Script::Part& part = bank.part;
  if (part.line != nullptr) {
    if (static_cast<int64_t>(bank.tokens.size() - part.begin) == part.line->fail_at) {
      return Status(StatusCode::kInternal, "the script says that this step fails");
    }
    delay = std::max(delay, part.line->token_delay);
  }
  return bank.said = bank.script->next(part, bank.tokens.size());
}

Result<std::chrono::microseconds> ScriptedStage::play(
    const StepBatch& batch, std::vector<int32_t>& next) {
  std::chrono::microseconds delay = options_.step_time;
  bool reads_prompt = false;
  for (const StepRow& row : batch.rows) {
    Bank& bank = banks_[static_cast<size_t>(row.bank)];
    TANDEM_REQUIRE(row.pos == static_cast<int64_t>(bank.tokens.size()), "a row is out of order");
    bank.tokens.push_back(row.token);
    if (!row.wants_logits) {
      reads_prompt = true;
      bank.script = nullptr;
      continue;
    }
    TANDEM_TRY_ASSIGN(const int32_t token, next_token(bank, delay));
    next.push_back(token);
  }
  return reads_prompt ? delay + options_.prompt_step_time : delay;
}

Status ScriptedStage::submit(const WorkItem& item) {
  TANDEM_TRY(check(*item.batch));
  gate_.pass();
  std::vector<int32_t> next;
  TANDEM_TRY_ASSIGN(const std::chrono::microseconds delay, play(*item.batch, next));
  // Only the likely token of each row changes: all others stay as the first step wrote them.
  const auto vocab_size = static_cast<size_t>(info_.vocab_size);
  for (size_t i = 0; i < certain_.size(); ++i) {
    logits_[i * vocab_size + static_cast<size_t>(certain_[i])] = kUnlikely;
  }
  certain_ = std::move(next);
  if (logits_.size() < certain_.size() * vocab_size) {
    logits_.resize(certain_.size() * vocab_size, kUnlikely);
  }
  for (size_t i = 0; i < certain_.size(); ++i) {
    logits_[i * vocab_size + static_cast<size_t>(certain_[i])] = 0.0f;
  }
  if (delay.count() > 0) std::this_thread::sleep_for(delay);
  has_result_ = true;
  return {};
}

Result<StageResult> ScriptedStage::collect() {
  TANDEM_REQUIRE(has_result_, "there is no result");
  has_result_ = false;
  StageResult result;
  result.logits = {
      logits_.data(), static_cast<int64_t>(certain_.size()), info_.vocab_size, info_.vocab_size};
  return result;
}

int64_t ScriptedStage::length(int64_t bank) const {
  return static_cast<int64_t>(banks_[static_cast<size_t>(bank)].tokens.size());
}

Status ScriptedStage::reset(int64_t bank) {
  banks_[static_cast<size_t>(bank)] = {};
  return {};
}

Status ScriptedStage::truncate(int64_t bank, int64_t length) {
  TANDEM_REQUIRE(length >= 0 && length <= this->length(bank), "the bank is shorter");
  Tokens tokens = std::move(banks_[static_cast<size_t>(bank)].tokens);
  tokens.resize(static_cast<size_t>(length));
  banks_[static_cast<size_t>(bank)] = {std::move(tokens), nullptr, {}, -1};
  return {};
}

Status ScriptedStage::fork(int64_t from, int64_t to) {
  TANDEM_REQUIRE(from != to, "a bank cannot be forked into itself");
  banks_[static_cast<size_t>(to)] = banks_[static_cast<size_t>(from)];
  return {};
}

Result<CheckpointId> ScriptedStage::checkpoint(int64_t bank) {
  checkpoints_[next_checkpoint_] = banks_[static_cast<size_t>(bank)].tokens;
  return next_checkpoint_++;
}

Status ScriptedStage::restore(int64_t bank, CheckpointId id) {
  const auto found = checkpoints_.find(id);
  if (found == checkpoints_.end()) return Status(StatusCode::kNotFound, "no such checkpoint");
  banks_[static_cast<size_t>(bank)] = {found->second, nullptr, {}, -1};
  return {};
}

Status ScriptedStage::drop_checkpoint(CheckpointId id) {
  checkpoints_.erase(id);
  return {};
}

Status ScriptedStage::save(int64_t bank, ByteSink& sink) {
  const Tokens& tokens = banks_[static_cast<size_t>(bank)].tokens;
  const uint64_t count = tokens.size();
  TANDEM_TRY(sink.write(std::as_bytes(std::span(&count, 1))));
  return sink.write(std::as_bytes(std::span(tokens)));
}

Status ScriptedStage::load(int64_t bank, ByteSource& source) {
  uint64_t count = 0;
  TANDEM_TRY(source.read(std::as_writable_bytes(std::span(&count, 1))));
  TANDEM_REQUIRE(count <= static_cast<uint64_t>(info_.context_tokens), "the state is too long");
  Tokens tokens(count);
  TANDEM_TRY(source.read(std::as_writable_bytes(std::span(tokens))));
  banks_[static_cast<size_t>(bank)] = {std::move(tokens), nullptr, {}, -1};
  return {};
}

}  // namespace tandem::test
