#include "worker/step_arrays.h"

#include <algorithm>

#include "base/limits.h"

namespace tandem {

StepArrays::StepArrays(int64_t max_rows) : max_rows_(max_rows), bank_seen_(kBanksMax, 0) {
  const auto size = static_cast<size_t>(max_rows);
  token_.reserve(size);
  pos_.reserve(size);
  segment_.reserve(size);
  logit_rows_.reserve(size);
  segments_.reserve(size);
}

Status StepArrays::fill(std::span<const StepRow> rows, const BankStore& banks, int64_t vocab_size) {
  token_.clear();
  pos_.clear();
  segment_.clear();
  logit_rows_.clear();
  segments_.clear();
  std::fill(bank_seen_.begin(), bank_seen_.end(), uint8_t{0});
  TANDEM_REQUIRE(
      !rows.empty() && static_cast<int64_t>(rows.size()) <= max_rows_,
      str_cat("a step of ", rows.size(), " rows; this stage takes 1 to ", max_rows_));
  for (size_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
    TANDEM_REQUIRE(
        row.token >= 0 && row.token < vocab_size,
        str_cat("row ", i, ": token ", row.token, " is outside the vocabulary of ", vocab_size));
    TANDEM_TRY(add_row(row, i, banks));
    if (row.wants_logits) logit_rows_.push_back(static_cast<int32_t>(i));
  }
  return {};
}

Status StepArrays::add_row(const StepRow& row, size_t row_idx, const BankStore& banks) {
  const bool continues = !segments_.empty() && segments_.back().bank == row.bank;
  if (!continues) {
    TANDEM_REQUIRE(
        row.bank >= 0 && row.bank < banks.num_banks(),
        str_cat("row ", row_idx, ": bank ", row.bank, ", this stage has ", banks.num_banks()));
    TANDEM_REQUIRE(
        bank_seen_[row.bank] == 0,
        str_cat("row ", row_idx, ": the rows of bank ", row.bank, " do not stand together"));
    bank_seen_[row.bank] = 1;
    segments_.push_back({row.bank, static_cast<int32_t>(row_idx), 0, row.pos});
  }
  Segment& segment = segments_.back();
  const int64_t expected = banks.length(row.bank) + segment.num_rows;
  TANDEM_REQUIRE(
      row.pos == expected,
      str_cat(
          "row ", row_idx, ": position ", row.pos, " of bank ", row.bank, ", next is ", expected));
  TANDEM_REQUIRE(
      row.pos < banks.limits().context_tokens,
      str_cat("position ", row.pos, " is beyond the context of ", banks.limits().context_tokens));
  ++segment.num_rows;
  token_.push_back(row.token);
  pos_.push_back(row.pos);
  segment_.push_back(static_cast<int32_t>(segments_.size() - 1));
  return {};
}

StepRows StepArrays::view() const {
  StepRows out;
  out.num_rows = static_cast<int64_t>(token_.size());
  out.token = token_.data();
  out.pos = pos_.data();
  out.segment = segment_.data();
  out.num_segments = static_cast<int64_t>(segments_.size());
  out.segments = segments_.data();
  out.host_segments = segments_.data();
  out.num_logits = static_cast<int64_t>(logit_rows_.size());
  out.logit_rows = logit_rows_.data();
  return out;
}

}  // namespace tandem
