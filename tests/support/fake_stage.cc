#include "tests/support/fake_stage.h"

#include <algorithm>
#include <limits>

namespace tandem::test {
namespace {

constexpr float kPeak = 20.0f;

}  // namespace

StageInfo whole_stage_info(
    int64_t vocab_size, int64_t num_banks, int64_t context_tokens, int64_t max_rows) {
  StageInfo info;
  info.range = {0, 2, /*embeds=*/true, /*emits_logits=*/true};
  info.boundary_width = 4;
  info.vocab_size = vocab_size;
  info.num_banks = num_banks;
  info.context_tokens = context_tokens;
  info.max_rows = max_rows;
  return info;
}

FakeStage::FakeStage(const StageInfo& stage_info)
    : info_(stage_info), banks_(static_cast<size_t>(stage_info.num_banks)) {
  next = [this](std::span<const int32_t> tokens) {
    return static_cast<int32_t>((tokens.back() + 1) % info_.vocab_size);
  };
}

Status FakeStage::submit(const WorkItem& item) {
  const StepBatch& batch = *item.batch;
  TANDEM_REQUIRE(
      !batch.rows.empty() && static_cast<int64_t>(batch.rows.size()) <= info_.max_rows,
      "a step has too few or too many rows");
  if (before_step) TANDEM_TRY(before_step(batch));
  std::vector<Bank> after = banks_;
  logits_.clear();
  int64_t num_logits = 0;
  for (const StepRow& row : batch.rows) {
    Bank& bank = after[row.bank];
    TANDEM_REQUIRE(
        row.pos == static_cast<int64_t>(bank.tokens.size()) && row.pos < info_.context_tokens,
        str_cat("position ", row.pos, " of a bank with ", bank.tokens.size(), " tokens"));
    bank.tokens.push_back(row.token);
    bank.rewind_left = std::min(rewind_tokens, bank.rewind_left + 1);
    if (!row.wants_logits) continue;
    std::vector<float> logits(static_cast<size_t>(info_.vocab_size), 0.0f);
    const int32_t preferred = next(bank.tokens);
    // A negative token stands for a state that has gone bad.
    logits[preferred < 0 ? 0 : preferred] =
        preferred < 0 ? std::numeric_limits<float>::quiet_NaN() : kPeak;
    logits_.insert(logits_.end(), logits.begin(), logits.end());
    ++num_logits;
  }
  banks_ = std::move(after);
  steps.push_back(batch);
  boundary_.assign(batch.rows.size() * static_cast<size_t>(info_.boundary_width), 0.0f);
  result_ = {};
  const auto rows = static_cast<int64_t>(batch.rows.size());
  if (info_.range.emits_logits) {
    result_.logits = {
        logits_.data(), num_logits + logits_rows_offset, info_.vocab_size, info_.vocab_size};
  } else {
    result_.boundary = {boundary_.data(), rows, info_.boundary_width, info_.boundary_width};
  }
  return {};
}

Result<StageResult> FakeStage::collect() {
  return result_;
}

Status FakeStage::allowed(const char* operation) const {
  return before_operation ? before_operation(operation) : Status();
}

int64_t FakeStage::length(int64_t bank) const {
  return static_cast<int64_t>(banks_[bank].tokens.size());
}

Status FakeStage::reset(int64_t bank) {
  TANDEM_TRY(allowed("reset"));
  banks_[bank] = {};
  drop_checkpoints_above(bank, -1);
  return {};
}

Status FakeStage::truncate(int64_t bank, int64_t length) {
  TANDEM_TRY(allowed("truncate"));
  const int64_t num_back = this->length(bank) - length;
  TANDEM_REQUIRE(length >= 0 && num_back >= 0, "cannot truncate to a larger length");
  Bank& state = banks_[bank];
  if (length == 0) {
    state = {};
  } else if (num_back > state.rewind_left) {
    return {StatusCode::kAborted, "beyond what can be taken back"};
  } else {
    state.tokens.resize(static_cast<size_t>(length));
    state.rewind_left -= num_back;
  }
  drop_checkpoints_above(bank, length);
  return {};
}

Status FakeStage::fork(int64_t from, int64_t to) {
  TANDEM_TRY(allowed("fork"));
  banks_[to] = banks_[from];
  return {};
}

Result<CheckpointId> FakeStage::checkpoint(int64_t bank) {
  TANDEM_TRY(allowed("checkpoint"));
  checkpoints_[next_checkpoint_] = {bank, banks_[bank]};
  return next_checkpoint_++;
}

Status FakeStage::restore(int64_t bank, CheckpointId id) {
  TANDEM_TRY(allowed("restore"));
  const auto found = checkpoints_.find(id);
  if (found == checkpoints_.end() || found->second.bank != bank) {
    return {StatusCode::kNotFound, "no such checkpoint"};
  }
  banks_[bank] = found->second.state;
  drop_checkpoints_above(bank, length(bank));
  return {};
}

Status FakeStage::drop_checkpoint(CheckpointId id) {
  checkpoints_.erase(id);
  return {};
}

void FakeStage::drop_checkpoints_above(int64_t bank, int64_t length) {
  std::erase_if(checkpoints_, [&](const auto& entry) {
    return entry.second.bank == bank &&
           static_cast<int64_t>(entry.second.state.tokens.size()) > length;
  });
}

Status FakeStage::save(int64_t bank, ByteSink& sink) {
  TANDEM_TRY(allowed("save"));
  const int64_t count = length(bank);
  TANDEM_TRY(sink.write(bytes_of(count)));
  return sink.write(std::as_bytes(std::span(banks_[bank].tokens)));
}

Status FakeStage::load(int64_t bank, ByteSource& source) {
  TANDEM_TRY(reset(bank));
  TANDEM_TRY(allowed("load"));
  int64_t count = 0;
  TANDEM_TRY(source.read(writable_bytes_of(count)));
  TANDEM_REQUIRE(count >= 0 && count <= info_.context_tokens, "a saved bank of no such length");
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  TANDEM_TRY(source.read(std::as_writable_bytes(std::span(tokens))));
  banks_[bank].tokens = std::move(tokens);
  return {};
}

}  // namespace tandem::test
