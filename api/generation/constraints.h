#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coordinator/sampling/token_constraint.h"

namespace tandem::api {

/// Lets everything pass up to and including `end_of_reasoning`, then follows `inner`.
/// Threads: one owner.
class AfterReasoning final : public TokenConstraint {
 public:
  AfterReasoning(int32_t end_of_reasoning, std::shared_ptr<TokenConstraint> inner)
      : end_(end_of_reasoning), inner_(std::move(inner)) {}

  void mask(std::span<float> logits) override {
    if (passed_) inner_->mask(logits);
  }
  void accept(int32_t token) override;
  bool complete() const override { return passed_ && inner_->complete(); }

 private:
  int32_t end_;
  std::shared_ptr<TokenConstraint> inner_;
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
