#include "api/generation/constraints.h"

#include <algorithm>
#include <limits>

namespace tandem::api {

void AfterReasoning::mask(std::span<float> logits) {
  if (passed_) return inner_->mask(logits);
  constexpr float kExcluded = -std::numeric_limits<float>::infinity();
  for (const int32_t token : stop_tokens_) logits[static_cast<size_t>(token)] = kExcluded;
  for (size_t size = 1; size <= tail_.size(); ++size) {
    if (!tail_.ends_with(end_.substr(0, size))) continue;
    const std::string_view rest = std::string_view(end_).substr(size);
    for (size_t i = 0; i < logits.size(); ++i) {
      const std::string_view text = tokenizer_->token_bytes(static_cast<int32_t>(i));
      if (text.size() > rest.size() && text.starts_with(rest)) logits[i] = kExcluded;
    }
  }
}

void AfterReasoning::accept(int32_t token) {
  if (passed_) return inner_->accept(token);
  tail_ += tokenizer_->token_bytes(token);
  passed_ = tail_.find(end_) != std::string::npos;
  if (tail_.size() >= end_.size()) tail_.erase(0, tail_.size() - end_.size() + 1);
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
