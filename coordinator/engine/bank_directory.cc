#include "coordinator/engine/bank_directory.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr size_t kCheckpointsMax = 4;

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t size = std::min(a.size(), b.size());
  const auto [end, _] = std::mismatch(a.begin(), a.begin() + size, b.begin());
  return end - a.begin();
}

}  // namespace

BankDirectory::BankDirectory(Pipeline& pipeline)
    : pipeline_(pipeline), banks_(static_cast<size_t>(pipeline.num_banks())) {}

bool BankDirectory::has_idle() const {
  return std::any_of(banks_.begin(), banks_.end(), [](const Bank& bank) { return !bank.busy; });
}

void BankDirectory::describe(std::vector<BankInfo>& out) const {
  out.clear();
  for (const Bank& bank : banks_) {
    out.push_back({bank.busy, static_cast<int64_t>(bank.tokens.size()), bank.last_used});
  }
}

int64_t BankDirectory::find(std::span<const int32_t> tokens) const {
  int64_t best = -1;
  int64_t best_common = -1;
  for (size_t i = 0; i < banks_.size(); ++i) {
    if (banks_[i].busy) continue;
    const int64_t num_common = common_prefix(banks_[i].tokens, tokens);
    const bool is_shorter =
        best >= 0 && num_common > 0 && banks_[i].tokens.size() < banks_[best].tokens.size();
    if (num_common > best_common || (num_common == best_common && is_shorter)) {
      best = static_cast<int64_t>(i);
      best_common = num_common;
    }
  }
  return best;
}

int64_t BankDirectory::choose(std::span<const int32_t> prompt, int64_t& num_common) const {
  // Sharing a few leading tokens (every chat does) is no reason to cut a long history.
  constexpr int64_t kCommonMin = 32;
  const int64_t best = find(prompt);
  if (best < 0) return -1;
  num_common = common_prefix(banks_[best].tokens, prompt);
  const bool extends = num_common == static_cast<int64_t>(banks_[best].tokens.size());
  if ((extends && num_common > 0) || num_common >= kCommonMin) return best;

  num_common = 0;
  int64_t oldest = -1;
  for (size_t i = 0; i < banks_.size(); ++i) {
    const Bank& bank = banks_[i];
    if (bank.busy) continue;
    if (bank.tokens.empty()) return static_cast<int64_t>(i);
    if (oldest < 0 || bank.last_used < banks_[oldest].last_used) oldest = static_cast<int64_t>(i);
  }
  num_common = common_prefix(banks_[oldest].tokens, prompt);
  return oldest;
}

Result<BankDirectory::Lease> BankDirectory::acquire(std::span<const int32_t> prompt) {
  TANDEM_REQUIRE(!prompt.empty(), "the prompt has no tokens");
  int64_t num_common = 0;
  const int64_t idx = choose(prompt, num_common);
  if (idx < 0) return Status(StatusCode::kResourceExhausted, "every bank is busy; try again");
  num_common = std::min(num_common, static_cast<int64_t>(prompt.size()) - 1);
  TANDEM_TRY_ASSIGN(const int64_t num_reused, cut(idx, num_common));
  banks_[idx].busy = true;
  return Lease{idx, num_reused};
}

Result<int64_t> BankDirectory::cut(int64_t bank_idx, int64_t length) {
  Bank& bank = banks_[bank_idx];
  const auto num_tokens = static_cast<int64_t>(bank.tokens.size());
  // After an error a stage may hold other tokens than the history says.
  if (pipeline_.length(bank_idx) != num_tokens) {
    drop_checkpoints_above(bank, -1);
    bank.tokens.clear();
    TANDEM_TRY(pipeline_.reset(bank_idx));
    return 0;
  }
  if (length == num_tokens) return length;
  if (const Status status = pipeline_.truncate(bank_idx, length); !status.ok()) {
    length = status.code() == StatusCode::kAborted ? rewind_to_checkpoint(bank_idx, length) : 0;
    if (length == 0) {
      drop_checkpoints_above(bank, -1);
      bank.tokens.clear();
      TANDEM_TRY(pipeline_.reset(bank_idx));
    }
  }
  bank.tokens.resize(static_cast<size_t>(length));
  drop_checkpoints_above(bank, length);
  return length;
}

int64_t BankDirectory::rewind_to_checkpoint(int64_t bank_idx, int64_t length) {
  Bank& bank = banks_[bank_idx];
  // From a checkpoint a little beyond, the rings may still reach back to `length`.
  const auto beyond = std::find_if(
      bank.checkpoints.begin(), bank.checkpoints.end(),
      [&](const Checkpoint& checkpoint) { return checkpoint.length >= length; });
  if (beyond != bank.checkpoints.end() && pipeline_.restore(bank_idx, beyond->ids).ok() &&
      pipeline_.truncate(bank_idx, length).ok()) {
    return length;
  }
  drop_checkpoints_above(bank, length);
  if (bank.checkpoints.empty()) return 0;
  const Checkpoint& below = bank.checkpoints.back();
  return pipeline_.restore(bank_idx, below.ids).ok() ? below.length : 0;
}

void BankDirectory::append(int64_t bank, std::span<const int32_t> tokens) {
  banks_[bank].tokens.insert(banks_[bank].tokens.end(), tokens.begin(), tokens.end());
}

Status BankDirectory::keep_checkpoint(int64_t bank_idx) {
  Bank& bank = banks_[bank_idx];
  const auto length = static_cast<int64_t>(bank.tokens.size());
  if (length == 0 || (!bank.checkpoints.empty() && bank.checkpoints.back().length == length)) {
    return {};
  }
  TANDEM_TRY_ASSIGN(PipelineCheckpoint ids, pipeline_.checkpoint(bank_idx));
  bank.checkpoints.push_back({length, std::move(ids)});
  if (bank.checkpoints.size() > kCheckpointsMax) {
    pipeline_.drop_checkpoint(bank.checkpoints.front().ids);
    bank.checkpoints.erase(bank.checkpoints.begin());
  }
  return {};
}

void BankDirectory::drop_checkpoints_above(Bank& bank, int64_t length) {
  while (!bank.checkpoints.empty() && bank.checkpoints.back().length > length) {
    pipeline_.drop_checkpoint(bank.checkpoints.back().ids);
    bank.checkpoints.pop_back();
  }
}

void BankDirectory::release(int64_t bank) {
  banks_[bank].busy = false;
  banks_[bank].last_used = ++now_;
}

void BankDirectory::discard(int64_t bank_idx) {
  Bank& bank = banks_[bank_idx];
  drop_checkpoints_above(bank, -1);
  bank.tokens.clear();
  bank.busy = false;
  // The state behind the history is unknown; a stage that cannot even reset fails the next step.
  (void)pipeline_.reset(bank_idx);
}

}  // namespace tandem
