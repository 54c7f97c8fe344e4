#include "tests/api/scripted/script.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coordinator/engine/loaded_model.h"
#include "tests/api/scripted/scripted_stage.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

class ScriptTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = load_model(repo_path("models/nano-q4_k.gguf"));
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    tokenizer_ = std::move(loaded).value().tokenizer;
  }
  static void TearDownTestSuite() { tokenizer_.reset(); }

  static Script script() {
    auto made = Script::from_json(
        R"([{"when": "weather", "reasoning": "It asks.", "say": "Sunny."}, {"when": "muse", "reasoning": "Hm."}, {"say": "Hello."}])",
        tokenizer_);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
  }

  static std::vector<int32_t> tokens_of(std::string_view rendered) {
    std::vector<int32_t> tokens;
    EXPECT_OK(tokenizer_->encode_raw(rendered, tokens));
    return tokens;
  }

  /// What is said after `rendered`, to the end of the turn.
  static std::string played(std::string_view rendered) {
    const Script playing = script();
    std::vector<int32_t> tokens = tokens_of(rendered);
    const size_t prompt_size = tokens.size();
    const int32_t end = *tokenizer_->special_id("<｜end▁of▁sentence｜>");
    const Script::Part part = playing.find(tokens);
    while (tokens.size() < prompt_size + 100 && playing.next(part, tokens.size()) != end) {
      tokens.push_back(playing.next(part, tokens.size()));
    }
    return tokenizer_->decode(std::span(tokens).subspan(prompt_size), /*skip_special=*/false);
  }

  static std::shared_ptr<const Tokenizer> tokenizer_;
};

std::shared_ptr<const Tokenizer> ScriptTest::tokenizer_;

TEST_F(ScriptTest, SaysTheFirstLineThatFitsTheNewestTurn) {
  EXPECT_EQ(played("<｜User｜>How is the weather?<｜Assistant｜></think>"), "Sunny.");
  EXPECT_EQ(
      played("<｜User｜>The weather?<｜Assistant｜></think>Sunny.<｜end▁of▁sentence｜>"
             "<｜User｜>Hi<｜Assistant｜></think>"),
      "Hello.");
}

TEST_F(ScriptTest, ReasonsWhereThePromptAsksForIt) {
  EXPECT_EQ(played("<｜User｜>weather<｜Assistant｜><think>"), "It asks.</think>Sunny.");
  EXPECT_EQ(played("<｜User｜>muse<｜Assistant｜><think>"), "Hm.");
}

TEST_F(ScriptTest, RefusesWhatIsNoScript) {
  EXPECT_ERROR(Script::from_json("{", tokenizer_), StatusCode::kInvalidArgument, "array");
  EXPECT_ERROR(Script::from_json("[1]", tokenizer_), StatusCode::kInvalidArgument, "object");
  EXPECT_ERROR(
      Script::from_json(R"([{"say": 1}])", tokenizer_), StatusCode::kInvalidArgument, "say");
}

TEST_F(ScriptTest, StageMakesTheNextTokenCertain) {
  ScriptedStage stage(script(), {});
  const std::vector<int32_t> prompt = tokens_of("<｜User｜>Hi<｜Assistant｜></think>");
  StepBatch batch;
  for (size_t i = 0; i < prompt.size(); ++i) {
    batch.rows.push_back({0, static_cast<int32_t>(i), prompt[i], i + 1 == prompt.size()});
  }
  const WorkItem item{&batch, {}};
  EXPECT_OK(stage.submit(item));
  const auto result = stage.collect();
  ASSERT_TRUE(result.ok()) << result.status().message();
  const ConstRows logits = result.value().logits;
  ASSERT_EQ(logits.rows, 1);
  ASSERT_EQ(logits.cols, tokenizer_->size());
  for (int64_t i = 0; i < logits.cols; ++i) {
    EXPECT_EQ(logits.data[i], i == tokens_of("Hello.")[0] ? 0.0f : -1e4f) << i;
  }
}

TEST_F(ScriptTest, StageRefusesRowsOutOfOrder) {
  ScriptedStage stage(script(), {});
  StepBatch batch;
  batch.rows = {{0, 1, 5, true}};
  EXPECT_ERROR(stage.submit({&batch, {}}), StatusCode::kInvalidArgument, "order");
}

}  // namespace
}  // namespace tandem::test
