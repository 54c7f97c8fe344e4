#include "coordinator/sampling/json_constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/coordinator/sampling/json_vocabulary.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

using test::json_vocabulary;
using test::JsonVocabulary;

std::shared_ptr<const JsonGrammar> grammar_of(const std::string& schema) {
  return std::make_shared<const JsonGrammar>(std::move(JsonGrammar::from_schema(schema).value()));
}

JsonConstraint constraint(
    std::shared_ptr<const JsonGrammar> grammar, const JsonVocabulary& vocabulary) {
  return std::move(
      JsonConstraint::create(std::move(grammar), vocabulary.trie, {vocabulary.end_token}).value());
}

std::vector<bool> allowed(JsonConstraint* c, size_t vocab_size) {
  std::vector<float> logits(vocab_size, 1.0f);
  c->mask(logits);
  std::vector<bool> result;
  for (const float logit : logits) result.push_back(std::isfinite(logit));
  return result;
}

void accept_text(JsonConstraint* c, const std::string& text) {
  for (const char byte : text) c->accept(static_cast<unsigned char>(byte));
}

constexpr const char* kPerson = R"({"type":"object","properties":{"name":{"type":"string"},
    "age":{"type":"integer"},"color":{"enum":["red","green"]},"tags":{"type":"array","items":
    {"type":"string"},"maxItems":3},"friend":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},
    "required":["name","color"],"additionalProperties":false})";

TEST(JsonConstraintTest, AllowsTokensThatCrossBorders) {
  const JsonVocabulary vocabulary = json_vocabulary();
  const auto id_of = [&](const std::string& text) {
    return static_cast<size_t>(
        std::find(vocabulary.texts.begin(), vocabulary.texts.end(), text) -
        vocabulary.texts.begin());
  };
  JsonConstraint c = constraint(grammar_of(kPerson), vocabulary);
  std::vector<bool> first = allowed(&c, vocabulary.texts.size());
  EXPECT_TRUE(first[id_of("{\"")]);
  EXPECT_FALSE(first[id_of("{}")]);
  EXPECT_FALSE(first[id_of("[]")]);
  EXPECT_FALSE(first[static_cast<size_t>(vocabulary.end_token)]);
  accept_text(&c, R"({"name":"x","color":)");
  const std::vector<bool> color = allowed(&c, vocabulary.texts.size());
  EXPECT_TRUE(color[id_of("\"red\"")]);
  EXPECT_FALSE(color[id_of("green\"")]);
  accept_text(&c, "\"");
  const std::vector<bool> inside = allowed(&c, vocabulary.texts.size());
  EXPECT_TRUE(inside[id_of("green\"")]);
  EXPECT_FALSE(inside[id_of("\"red\"")]);
}

TEST(JsonConstraintTest, EndsOnlyWithAWholeValue) {
  const JsonVocabulary vocabulary = json_vocabulary();
  JsonConstraint c = constraint(grammar_of(kPerson), vocabulary);
  accept_text(&c, R"({"name":"x","color":"red"})");
  EXPECT_TRUE(c.complete());
  std::vector<bool> at_end = allowed(&c, vocabulary.texts.size());
  EXPECT_TRUE(at_end[static_cast<size_t>(vocabulary.end_token)]);
  EXPECT_EQ(std::count(at_end.begin(), at_end.end(), true), 1);
  c.accept(vocabulary.end_token);
  EXPECT_TRUE(c.complete());
  at_end = allowed(&c, vocabulary.texts.size());
  EXPECT_EQ(std::count(at_end.begin(), at_end.end(), true), 0);

  JsonConstraint number = constraint(grammar_of(R"({"type":"integer"})"), vocabulary);
  accept_text(&number, "1");
  EXPECT_TRUE(number.complete());
  const std::vector<bool> open = allowed(&number, vocabulary.texts.size());
  EXPECT_TRUE(open['2'] && open[static_cast<size_t>(vocabulary.end_token)]);
}

TEST(JsonConstraintTest, AForeignTokenEndsIt) {
  const JsonVocabulary vocabulary = json_vocabulary();
  for (const int32_t foreign : {int32_t{'x'}, vocabulary.end_token, -1, 1 << 20}) {
    JsonConstraint c = constraint(grammar_of(R"({"type":"array"})"), vocabulary);
    accept_text(&c, "[");
    c.accept(foreign);
    EXPECT_FALSE(c.complete());
    const std::vector<bool> after = allowed(&c, vocabulary.texts.size());
    EXPECT_EQ(std::count(after.begin(), after.end(), true), 0);
  }
}

TEST(JsonConstraintTest, RefusesMissingOrForeignEndTokens) {
  const JsonVocabulary vocabulary = json_vocabulary();
  const auto grammar = grammar_of("{}");
  EXPECT_ERROR(
      JsonConstraint::create(grammar, vocabulary.trie, {}), StatusCode::kInvalidArgument,
      "needs an end token");
  EXPECT_ERROR(
      JsonConstraint::create(grammar, vocabulary.trie, {100000}), StatusCode::kInvalidArgument,
      "end token 100000 is outside");
}

TEST(VocabularyTrieTest, NeedsEveryPrintableByte) {
  EXPECT_ERROR(
      VocabularyTrie::create(
          256,
          [](int32_t id) -> std::string_view {
            static const std::string kBytes = "abc";
            return id < 3 ? std::string_view(kBytes).substr(static_cast<size_t>(id), 1) : "";
          }),
      StatusCode::kInvalidArgument, "no token for the byte 32 alone");
  EXPECT_ERROR(
      VocabularyTrie::create(0, [](int32_t) -> std::string_view { return ""; }),
      StatusCode::kInvalidArgument, "vocabulary size is 0");
}

/// A random walk that takes only allowed tokens, ends when it may with some chance, and checks each
/// mask against every token tried alone.
std::string random_output(
    std::shared_ptr<const JsonGrammar> grammar, const JsonVocabulary& vocabulary, uint64_t seed) {
  Rng rng(seed);
  JsonConstraint c = constraint(grammar, vocabulary);
  JsonMachine plain(grammar);
  JsonMachine::FrameSet frames = plain.start();
  const auto follow = [&](JsonMachine::FrameSet from, const std::string& text) {
    JsonMachine::FrameSet next;
    for (const char byte : text) {
      plain.step(from, static_cast<uint8_t>(byte), &next);
      from = next;
    }
    return from;
  };
  std::string output;
  while (output.size() < 4000) {
    const std::vector<bool> may = allowed(&c, vocabulary.texts.size());
    std::vector<int32_t> choices;
    for (size_t id = 0; id < may.size(); ++id) {
      const bool is_end = static_cast<int32_t>(id) == vocabulary.end_token;
      const bool fits =
          is_end ? plain.is_complete(frames) : !follow(frames, vocabulary.texts[id]).empty();
      EXPECT_EQ(may[id], fits) << "seed=" << seed << " after " << output << " id=" << id;
      if (may[id] && !is_end) choices.push_back(static_cast<int32_t>(id));
    }
    EXPECT_EQ(c.complete(), may[static_cast<size_t>(vocabulary.end_token)]);
    if (c.complete() && (choices.empty() || rng.next() % 3 == 0)) return output;
    if (choices.empty()) {
      ADD_FAILURE() << "seed=" << seed << ": nothing may follow " << output;
      return output;
    }
    int32_t token = choices[rng.next() % choices.size()];
    // Closers are taken often enough for a walk to end.
    for (const char closer : {'"', ']', '}'}) {
      if (may[static_cast<size_t>(closer)] && rng.next() % 4 == 0) token = closer;
    }
    c.accept(token);
    frames = follow(frames, vocabulary.texts[static_cast<size_t>(token)]);
    output += vocabulary.texts[static_cast<size_t>(token)];
  }
  return output;
}

TEST(JsonConstraintTest, AnyWalkGivesJsonAndMasksMatchSingleTokens) {
  const JsonVocabulary vocabulary = json_vocabulary();
  const std::shared_ptr<const JsonGrammar> grammars[] = {
      std::make_shared<const JsonGrammar>(JsonGrammar::any_object()), grammar_of(kPerson),
      grammar_of(R"({"type":"array","items":{"type":["number","boolean"]},"minItems":2})")};
  int num_finished = 0;
  for (size_t which = 0; which < std::size(grammars); ++which) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      std::string text = random_output(grammars[which], vocabulary, seed);
      // The walk picks single bytes above 0x7F, which a decoder would repair.
      for (char& byte : text) byte = static_cast<unsigned char>(byte) >= 0x80 ? '?' : byte;
      const auto value = nlohmann::json::parse(text, nullptr, false);
      if (text.size() >= 4000) continue;  // cut by the test's own bound
      ++num_finished;
      ASSERT_FALSE(value.is_discarded()) << text;
      if (which == 0) {
        EXPECT_TRUE(value.is_object());
      } else if (which == 1) {
        EXPECT_TRUE(value["name"].is_string());
        EXPECT_TRUE(value["color"] == "red" || value["color"] == "green") << text;
        EXPECT_LE(value.value("tags", nlohmann::json::array()).size(), 3u);
      } else {
        EXPECT_GE(value.size(), 2u);
      }
    }
  }
  EXPECT_GE(num_finished, 30);
}

TEST(JsonConstraintTest, ALongOutputKeepsItsFramesBounded) {
  // Counting items makes new frames for ever; the walk crosses the point where they are collected.
  const JsonVocabulary vocabulary = json_vocabulary();
  JsonConstraint c = constraint(
      grammar_of(R"({"type":"array","items":{"type":"array","maxItems":2},"maxItems":100000})"),
      vocabulary);
  accept_text(&c, "[");
  for (int i = 0; i < 12000; ++i) {
    if (i > 0) accept_text(&c, ",");
    accept_text(&c, "[1,{\"a\":2}]");
    std::vector<float> logits(vocabulary.texts.size(), 0.0f);
    c.mask(logits);
    ASSERT_TRUE(std::isfinite(logits[','])) << i;
    ASSERT_TRUE(std::isfinite(logits[']'])) << i;
    ASSERT_FALSE(std::isfinite(logits['1'])) << i;
  }
  accept_text(&c, "]");
  EXPECT_TRUE(c.complete());
}

}  // namespace
}  // namespace tandem
