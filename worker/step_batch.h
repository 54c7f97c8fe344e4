#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/phase.h"

namespace tandem {

/// One row of a forward pass: the token at an absolute position of a bank.
struct StepRow {
  int32_t bank = 0;
  int32_t pos = 0;
  int32_t token = 0;
  bool wants_logits = false;
  Phase phase = Phase::kDecode;  // kPrefill: a row of a prompt, however few are left of it
};

/// One forward. Rows of one bank stand together, at consecutive positions that start at the bank's
/// length. Decode, chunked prefill, draft verification and mixtures are all this.
struct StepBatch {
  std::vector<StepRow> rows;
};

}  // namespace tandem
