#include "api/generation/answer_builder.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "coordinator/engine/loaded_model.h"
#include "tests/api/server/script_texts.h"
#include "tests/support/paths.h"

namespace tandem::api {
namespace {

using test::block_text;
using test::call_text;

/// What the deltas of an answer join to.
struct Joined {
  std::string reasoning;
  std::string content;
  std::vector<std::string> calls;  // "name arguments"
  std::string order;               // r, c, t: which kinds came, without repeats

  friend bool operator==(const Joined&, const Joined&) = default;
};

void add(const Delta& delta, Joined& out) {
  const auto came = [&](char kind) {
    if (out.order.empty() || out.order.back() != kind) out.order.push_back(kind);
  };
  switch (delta.kind) {
    case Delta::Kind::kReasoning:
      came('r');
      out.reasoning += delta.text;
      break;
    case Delta::Kind::kContent:
      came('c');
      out.content += delta.text;
      break;
    case Delta::Kind::kToolBegin:
      came('t');
      out.calls.push_back(delta.text + " ");
      break;
    case Delta::Kind::kToolArguments: out.calls.back() += delta.text; break;
    case Delta::Kind::kToolEnd:
    case Delta::Kind::kProgress:
    case Delta::Kind::kFinish: break;
  }
}

class AnswerBuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = load_model(test::repo_path("models/nano-q4_k.gguf"));
    ASSERT_TRUE(loaded.ok());
    loaded_ = std::move(loaded).value();
  }

  AnswerBuilder builder(bool single_call = false) {
    AnswerBuilder::Options options;
    options.tool_id_prefix = "toolu_";
    options.single_call = single_call;
    options.starts_in_reasoning = true;
    return AnswerBuilder(options, *loaded_.tokenizer);
  }

  /// Feeds `text` in pieces of at most `step_max` bytes through the parser and the builder.
  Joined build(const std::string& text, size_t step_max, uint64_t seed, AnswerBuilder& builder) {
    const auto parser = loaded_.protocol->parser({true, true});
    Rng rng(seed);
    std::vector<Delta> deltas;
    for (size_t at = 0; at < text.size() && !builder.wants_end();) {
      const size_t step = step_max <= 1 ? 1 : 1 + rng.next() % step_max;
      Mail mail;
      parser->push(std::string_view(text).substr(at, step), mail.events);
      builder.take(mail, deltas);
      at += step;
    }
    Mail last;
    last.kind = Mail::Kind::kFinish;
    parser->finish(last.events);
    builder.take(last, deltas);
    Joined out;
    for (const Delta& delta : deltas) add(delta, out);
    return out;
  }

  LoadedModel loaded_;
};

TEST_F(AnswerBuilderTest, B016AnySplitGivesTheSameAnswer) {
  const std::string text =
      "héllo &amp; think</think>Text with < and ünïcode." +
      block_text(
          call_text("get_time", {{"tz", "a &lt; b < c", true}, {"n", "[1, 2]", false}}) +
          call_text("add", {{"note", "日本語", true}}));
  AnswerBuilder whole_builder = builder();
  const Joined whole = build(text, text.size(), 1, whole_builder);
  EXPECT_EQ(whole.order, "rct");
  ASSERT_EQ(whole.calls.size(), 2u);
  EXPECT_EQ(whole_builder.answer().finish, FinishReason::kToolCalls);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    AnswerBuilder cut = builder();
    EXPECT_EQ(build(text, seed % 23, seed, cut), whole);
    EXPECT_EQ(cut.tool_block(), whole_builder.tool_block());
    EXPECT_EQ(cut.answer().content, whole_builder.answer().content);
  }
}

TEST_F(AnswerBuilderTest, ASingleCallEndsTheTurn) {
  AnswerBuilder single = builder(/*single_call=*/true);
  const Joined joined =
      build("x</think>" + block_text(call_text("a", {}) + call_text("b", {})), 7, 3, single);
  EXPECT_EQ(joined.calls.size(), 1u);
  EXPECT_TRUE(single.wants_end());
  EXPECT_EQ(single.answer().finish, FinishReason::kToolCalls);
}

TEST_F(AnswerBuilderTest, AMalformedBlockIsKeptApartFromTheContent) {
  AnswerBuilder broken = builder();
  (void)build(
      "x</think>Before.\n\n<｜DSML｜tool_calls>\n<｜DSML｜nonsense>\n</｜DSML｜tool_calls>", 5, 4,
      broken);
  EXPECT_FALSE(broken.parse_error().empty());
  EXPECT_EQ(broken.answer().content, "Before.");
}

TEST_F(AnswerBuilderTest, IdsOfCallsAreUnguessableAndDistinct) {
  AnswerBuilder two = builder();
  (void)build("x</think>" + block_text(call_text("a", {}) + call_text("b", {})), 9, 5, two);
  const auto& calls = two.answer().calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_NE(calls[0].id, calls[1].id);
  EXPECT_TRUE(calls[0].id.starts_with("toolu_"));
  EXPECT_EQ(calls[0].id.size(), 6u + 32u);
}

}  // namespace
}  // namespace tandem::api
