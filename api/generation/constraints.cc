#include "api/generation/constraints.h"

#include <algorithm>
#include <limits>

namespace tandem::api {

void AfterReasoning::accept(int32_t token) {
  if (passed_) {
    inner_->accept(token);
  } else {
    passed_ = token == end_;
  }
}

void StartsWith::mask(std::span<float> logits) {
  if (!broken_ && num_accepted_ == tokens_.size()) return;
  const auto allowed = broken_ ? logits.size() : static_cast<size_t>(tokens_[num_accepted_]);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (i != allowed) logits[i] = -std::numeric_limits<float>::infinity();
  }
}

void StartsWith::accept(int32_t token) {
  if (broken_ || num_accepted_ == tokens_.size()) return;
  if (token == tokens_[num_accepted_]) {
    ++num_accepted_;
  } else {
    broken_ = true;
  }
}

}  // namespace tandem::api
