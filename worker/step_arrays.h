#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/core/step_rows.h"
#include "kvstore/bank_store.h"
#include "worker/step_batch.h"

namespace tandem {

/// A StepBatch as the arrays that operations read, in host memory. Taken once, filled for each
/// step.
class StepArrays {
 public:
  explicit StepArrays(int64_t max_rows);

  /// Checks the rows against StepBatch's rules and fills the arrays.
  /// Errors: kInvalidArgument names the row.
  Status fill(std::span<const StepRow> rows, const BankStore& banks, int64_t vocab_size);

  StepRows view() const;
  const std::vector<Segment>& segments() const { return segments_; }

 private:
  Status add_row(const StepRow& row, size_t row_idx, const BankStore& banks);

  int64_t max_rows_;
  std::vector<int32_t> token_;
  std::vector<int32_t> pos_;
  std::vector<int32_t> segment_;
  std::vector<int32_t> logit_rows_;
  std::vector<Segment> segments_;
  std::vector<uint8_t> bank_seen_;
};

}  // namespace tandem
