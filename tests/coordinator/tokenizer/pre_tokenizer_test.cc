#include "coordinator/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "base/utf8.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> split(std::string_view text) {
  PieceSplitter splitter(text);
  std::vector<std::string> pieces;
  for (std::string_view piece; splitter.next(piece);) pieces.emplace_back(piece);
  return pieces;
}

TEST(PreTokenizerTest, KnowsTheNamesOfItsRules) {
  EXPECT_EQ(pre_tokenizer_by_name("joyai-llm"), PreTokenizer::kDeepSeekV3);
  EXPECT_EQ(pre_tokenizer_by_name("deepseek-v3"), PreTokenizer::kDeepSeekV3);
  EXPECT_EQ(pre_tokenizer_by_name("glm4"), std::nullopt);
  EXPECT_EQ(pre_tokenizer_by_name(""), std::nullopt);
}

TEST(PreTokenizerTest, CutsNumbersOfAnyScriptInThrees) {
  EXPECT_THAT(split(""), ElementsAre());
  EXPECT_THAT(split("1234567"), ElementsAre("123", "456", "7"));
  EXPECT_THAT(split("a12b"), ElementsAre("a", "12", "b"));
  EXPECT_THAT(split("٣٤٥٦"), ElementsAre("٣٤٥", "٦"));
  EXPECT_THAT(split("Ⅷ½²³x"), ElementsAre("Ⅷ½²", "³", "x"));
  EXPECT_THAT(split("x 12"), ElementsAre("x", " ", "12"));  // a number takes no space
}

TEST(PreTokenizerTest, KeepsIdeographsApartFromOtherLetters) {
  EXPECT_THAT(split("毕老师abc"), ElementsAre("毕老师", "abc"));
  EXPECT_THAT(split("abc毕老师"), ElementsAre("abc", "毕老师"));
  EXPECT_THAT(split(" 毕"), ElementsAre(" ", "毕"));
  EXPECT_THAT(split("カ・タかな漢"), ElementsAre("カ", "・", "タかな漢"));
  EXPECT_THAT(split("龥龦"), ElementsAre("龥", "龦"));  // U+9FA5 is the last one
  EXPECT_THAT(split("한국어 한"), ElementsAre("한국어", " 한"));
}

TEST(PreTokenizerTest, GivesOneAsciiPunctuationToAsciiLetters) {
  EXPECT_THAT(split("(foo"), ElementsAre("(foo"));
  EXPECT_THAT(split("((foo"), ElementsAre("((", "foo"));
  EXPECT_THAT(split(" (foo"), ElementsAre(" (", "foo"));
  EXPECT_THAT(split("don't"), ElementsAre("don", "'t"));
  EXPECT_THAT(split("'été"), ElementsAre("'", "été"));
  EXPECT_THAT(split("'aé"), ElementsAre("'a", "é"));
  EXPECT_THAT(split("“a”"), ElementsAre("“", "a", "”"));
  for (const char c : std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")) {
    EXPECT_THAT(split(std::string(1, c) + "x"), ElementsAre(std::string(1, c) + "x"));
  }
}

TEST(PreTokenizerTest, GivesOneOtherCharacterToLetters) {
  EXPECT_THAT(split("a b"), ElementsAre("a", " b"));
  EXPECT_THAT(split("\tb"), ElementsAre("\tb"));
  EXPECT_THAT(split("\nb"), ElementsAre("\n", "b"));
  EXPECT_THAT(split("\u200Bb"), ElementsAre("\u200Bb"));
  EXPECT_THAT(split("\u00A0é"), ElementsAre("\u00A0é"));
  EXPECT_THAT(split("e\u0301\u0301x"), ElementsAre("e\u0301\u0301x"));  // marks are part of words
  EXPECT_THAT(split("\u0301"), ElementsAre("\u0301"));
  EXPECT_THAT(
      split(std::string("\x01\x02"
                        "abc")),
      ElementsAre(
          "\x01",
          "\x02"
          "abc"));
}

TEST(PreTokenizerTest, KeepsPunctuationRunsWithASpaceAndNewlines) {
  EXPECT_THAT(split(" ~~~"), ElementsAre(" ~~~"));
  EXPECT_THAT(split("  ~~~"), ElementsAre(" ", " ~~~"));
  EXPECT_THAT(split("\t~~~"), ElementsAre("\t", "~~~"));
  EXPECT_THAT(split("。\n\r\nx"), ElementsAre("。\n\r\n", "x"));
  EXPECT_THAT(split("+<=>^`|~$ €"), ElementsAre("+<=>^`|~$", " €"));
  EXPECT_THAT(split("!\n !"), ElementsAre("!\n", " !"));
}

TEST(PreTokenizerTest, CutsWhiteSpaceBeforeItsLastCharacter) {
  EXPECT_THAT(split("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(split("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(split("a   1"), ElementsAre("a", "   ", "1"));  // the number ends the text before it
  EXPECT_THAT(split("a   毕"), ElementsAre("a", "   ", "毕"));
  EXPECT_THAT(split("a\u3000\u3000b"), ElementsAre("a", "\u3000", "\u3000b"));
  EXPECT_THAT(split("\u2028!"), ElementsAre("\u2028", "!"));
  EXPECT_THAT(split(" \u0085 !"), ElementsAre(" \u0085", " !"));
  EXPECT_THAT(split("a \u200B"), ElementsAre("a", " ", "\u200B"));
}

TEST(PreTokenizerTest, EndsWhiteSpaceAtItsLastNewline) {
  EXPECT_THAT(split("a \n b"), ElementsAre("a", " \n", " b"));
  EXPECT_THAT(split("a\n\n  b"), ElementsAre("a", "\n\n", " ", " b"));
  EXPECT_THAT(split("\r\n \r\n\t\tx"), ElementsAre("\r\n \r\n", "\t", "\tx"));
  EXPECT_THAT(split("\n  "), ElementsAre("\n", "  "));
}

TEST(PreTokenizerTest, KeepsUnmatchedTextTogether) {
  EXPECT_THAT(split("\x01\x02\x03 !"), ElementsAre("\x01\x02\x03", " !"));
  EXPECT_THAT(split("\u200B\u200B"), ElementsAre("\u200B\u200B"));
  EXPECT_THAT(split("a\u200B1"), ElementsAre("a", "\u200B", "1"));
  EXPECT_THAT(split("\uE000\uE000é"), ElementsAre("\uE000", "\uE000é"));  // private use
}

TEST(PreTokenizerTest, PiecesJoinToTheTextAndAreNeverEmpty) {
  Rng rng(11);
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(rng.next() >> 32) % n; };
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (uint32_t i = pick(30); i > 0; --i) {
      constexpr std::string_view kCommon = "a Z1.\n\r\t~'";
      const uint32_t kind = pick(4);
      if (kind == 0) append_utf8(pick(0xD800), text);
      if (kind == 1) append_utf8(0xE000 + pick(0x110000 - 0xE000), text);
      if (kind >= 2) text += kCommon[pick(static_cast<uint32_t>(kCommon.size()))];
    }
    std::string joined;
    for (const std::string& piece : split(text)) {
      ASSERT_FALSE(piece.empty());
      ASSERT_FALSE(find_invalid_utf8(piece).has_value()) << "a character was cut";
      joined += piece;
    }
    ASSERT_EQ(joined, text);
  }
}

}  // namespace
}  // namespace tandem
