#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/sampling/token_constraint.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace tandem::api {

/// Lets reasoning pass up to its end, then follows `inner`. The end is its marker's spelling in the
/// output, whether one token writes it or several, as whoever reads the output sees it. A token
/// that would complete the spelling and go on is excluded, and so are `stop_tokens`.
///
/// Limits: no single ordinary token holds the whole spelling, as in any vocabulary that marks it.
/// Threads: one owner.
class AfterReasoning final : public TokenConstraint {
 public:
  AfterReasoning(
      std::shared_ptr<const Tokenizer> tokenizer, std::string end, std::vector<int32_t> stop_tokens,
      std::shared_ptr<TokenConstraint> inner)
      : tokenizer_(std::move(tokenizer)),
        end_(std::move(end)),
        stop_tokens_(std::move(stop_tokens)),
        inner_(std::move(inner)) {}

  void mask(std::span<float> logits) override;
  void accept(int32_t token) override;
  bool complete() const override { return passed_ && inner_->complete(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string end_;
  std::vector<int32_t> stop_tokens_;
  std::shared_ptr<TokenConstraint> inner_;
  std::string tail_;  // of the reasoning; shorter than the end
  bool passed_ = false;
};

/// The output starts with these tokens; after them everything goes.
/// Threads: one owner.
class StartsWith final : public TokenConstraint {
 public:
  explicit StartsWith(std::vector<int32_t> tokens) : tokens_(std::move(tokens)) {}

  void mask(std::span<float> logits) override;
  void accept(int32_t token) override;
  bool complete() const override { return !broken_ && num_accepted_ == tokens_.size(); }

 private:
  std::vector<int32_t> tokens_;
  size_t num_accepted_ = 0;
  bool broken_ = false;
};

}  // namespace tandem::api
