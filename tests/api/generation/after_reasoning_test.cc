#include <gtest/gtest.h>

#include <cmath>

#include "api/generation/constraints.h"
#include "tests/support/paths.h"

namespace tandem {
namespace {

/// Allows nothing but one token.
class Only final : public TokenConstraint {
 public:
  explicit Only(int32_t token) : token_(token) {}
  void mask(std::span<float> logits) override {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (i != static_cast<size_t>(token_)) logits[i] = -INFINITY;
    }
  }
  void accept(int32_t) override { is_complete_ = true; }
  bool complete() const override { return is_complete_; }

 private:
  int32_t token_;
  bool is_complete_ = false;
};

class AfterReasoningTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = Tokenizer::from_hf_json(
        test::read_text(test::golden_path("tokenizer/nano-tokenizer.json")));
    ASSERT_TRUE(made.ok());
    tokenizer_ = *made;
    end_ = *tokenizer_->special_id("</think>");
    stop_ = *tokenizer_->special_id("<｜end▁of▁sentence｜>");
    only_ = tokens_of("{").front();
    constraint_ = std::make_unique<api::AfterReasoning>(
        tokenizer_, "</think>", std::vector<int32_t>{stop_}, std::make_shared<Only>(only_));
  }

  std::vector<int32_t> tokens_of(const std::string& text) {
    std::vector<int32_t> out;
    EXPECT_TRUE(tokenizer_->encode_text(text, out).ok());
    return out;
  }

  std::vector<float> mask() {
    std::vector<float> logits(static_cast<size_t>(tokenizer_->size()), 0.0f);
    constraint_->mask(logits);
    return logits;
  }
  bool allows(int32_t token) { return mask()[static_cast<size_t>(token)] == 0.0f; }

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<api::AfterReasoning> constraint_;
  int32_t end_ = 0;
  int32_t stop_ = 0;
  int32_t only_ = 0;
};

TEST_F(AfterReasoningTest, ReasoningIsFreeButForTheStopTokens) {
  for (const int32_t token : tokens_of("a < b and </thin")) constraint_->accept(token);
  const std::vector<float> logits = mask();
  EXPECT_EQ(logits[static_cast<size_t>(stop_)], -INFINITY);
  EXPECT_EQ(logits[static_cast<size_t>(end_)], 0.0f);
  EXPECT_EQ(logits[static_cast<size_t>(tokens_of("x").front())], 0.0f);
  EXPECT_FALSE(constraint_->complete());
}

TEST_F(AfterReasoningTest, TheMarkerEndsReasoning) {
  constraint_->accept(end_);
  EXPECT_TRUE(allows(only_));
  EXPECT_FALSE(allows(tokens_of("x").front()));
  constraint_->accept(only_);
  EXPECT_TRUE(constraint_->complete());
}

TEST_F(AfterReasoningTest, TheSpelledMarkerEndsReasoningToo) {
  const std::vector<int32_t> spelled = tokens_of("</think>");
  ASSERT_GT(spelled.size(), 1u);
  for (const int32_t token : spelled) {
    EXPECT_TRUE(allows(token));
    constraint_->accept(token);
  }
  EXPECT_FALSE(allows(tokens_of("x").front()));
}

TEST_F(AfterReasoningTest, NoTokenCompletesTheMarkerAndGoesOn) {
  for (const int32_t token : tokens_of("</think")) constraint_->accept(token);
  const std::vector<float> logits = mask();
  int num_excluded = 0;
  for (int32_t id = 0; id < tokenizer_->size(); ++id) {
    const std::string_view text = tokenizer_->token_bytes(id);
    const bool goes_on = text.size() > 1 && text.starts_with(">");
    EXPECT_EQ(logits[static_cast<size_t>(id)] != 0.0f, goes_on || id == stop_) << text;
    num_excluded += goes_on ? 1 : 0;
  }
  EXPECT_GT(num_excluded, 0);
}

}  // namespace
}  // namespace tandem
