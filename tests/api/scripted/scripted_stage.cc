#include "tests/api/scripted/scripted_stage.h"

#include <thread>
#include <utility>

namespace tandem::test {
namespace {

constexpr float kUnlikely = -1e4f;  // the exponential is 0, so no temperature draws it

}  // namespace

ScriptedStage::ScriptedStage(Script script, const ScriptedStageOptions& options)
    : script_(std::move(script)),
      step_time_(options.step_time),
      banks_(static_cast<size_t>(options.num_banks)) {
  info_.range = {0, 1};
  info_.boundary_width = 1;
  info_.vocab_size = script_.vocab_size();
  info_.num_banks = options.num_banks;
  info_.context_tokens = options.context_tokens;
  info_.max_rows = options.max_rows;
}

Status ScriptedStage::submit(const WorkItem& item) {
  const auto vocab_size = static_cast<size_t>(info_.vocab_size);
  for (const StepRow& row : item.batch->rows) {
    TANDEM_REQUIRE(row.bank >= 0 && row.bank < info_.num_banks, "no such bank");
    TANDEM_REQUIRE(row.token >= 0 && row.token < info_.vocab_size, "no such token");
  }
  // Only the likely token of each row changes: all others stay as the first step wrote them.
  for (size_t i = 0; i < certain_.size(); ++i) {
    logits_[i * vocab_size + static_cast<size_t>(certain_[i])] = kUnlikely;
  }
  certain_.clear();
  for (const StepRow& row : item.batch->rows) {
    Tokens& tokens = banks_[static_cast<size_t>(row.bank)];
    TANDEM_REQUIRE(row.pos == static_cast<int64_t>(tokens.size()), "a row is out of order");
    TANDEM_REQUIRE(row.pos < info_.context_tokens, "a row is past the context");
    tokens.push_back(row.token);
    if (row.wants_logits) certain_.push_back(script_.next(tokens));
  }
  if (logits_.size() < certain_.size() * vocab_size) {
    logits_.resize(certain_.size() * vocab_size, kUnlikely);
  }
  for (size_t i = 0; i < certain_.size(); ++i) {
    logits_[i * vocab_size + static_cast<size_t>(certain_[i])] = 0.0f;
  }
  if (step_time_.count() > 0) std::this_thread::sleep_for(step_time_);
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
  return static_cast<int64_t>(banks_[static_cast<size_t>(bank)].size());
}

Status ScriptedStage::reset(int64_t bank) {
  banks_[static_cast<size_t>(bank)].clear();
  return {};
}

Status ScriptedStage::truncate(int64_t bank, int64_t length) {
  TANDEM_REQUIRE(length >= 0 && length <= this->length(bank), "the bank is shorter");
  banks_[static_cast<size_t>(bank)].resize(static_cast<size_t>(length));
  return {};
}

Status ScriptedStage::fork(int64_t from, int64_t to) {
  TANDEM_REQUIRE(from != to, "a bank cannot be forked into itself");
  banks_[static_cast<size_t>(to)] = banks_[static_cast<size_t>(from)];
  return {};
}

Result<CheckpointId> ScriptedStage::checkpoint(int64_t bank) {
  checkpoints_[next_checkpoint_] = banks_[static_cast<size_t>(bank)];
  return next_checkpoint_++;
}

Status ScriptedStage::restore(int64_t bank, CheckpointId id) {
  const auto found = checkpoints_.find(id);
  if (found == checkpoints_.end()) return Status(StatusCode::kNotFound, "no such checkpoint");
  banks_[static_cast<size_t>(bank)] = found->second;
  return {};
}

Status ScriptedStage::drop_checkpoint(CheckpointId id) {
  checkpoints_.erase(id);
  return {};
}

Status ScriptedStage::save(int64_t bank, ByteSink& sink) {
  const Tokens& tokens = banks_[static_cast<size_t>(bank)];
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
  banks_[static_cast<size_t>(bank)] = std::move(tokens);
  return {};
}

}  // namespace tandem::test
