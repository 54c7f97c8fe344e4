#include "coordinator/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/limits.h"
#include "base/random.h"
#include "base/utf8.h"
#include "tests/coordinator/tokenizer/vocabularies.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

using Ids = std::vector<int32_t>;

Piece text_piece(std::string bytes) {
  return {Piece::Kind::kText, std::move(bytes)};
}
Piece control_piece(std::string bytes) {
  return {Piece::Kind::kControl, std::move(bytes)};
}

bool has_special(const Tokenizer& tokenizer, const Ids& ids) {
  for (const int32_t id : ids) {
    if (tokenizer.is_special(id)) return true;
  }
  return false;
}

TEST(TokenizerTest, MergesByRankNotByLength) {
  Vocabulary vocabulary;
  const int32_t bc = vocabulary.merge("b", "c");
  const int32_t ab = vocabulary.merge("a", "b");
  const int32_t abc = vocabulary.merge("ab", "c");
  const auto tokenizer = Tokenizer::create(vocabulary.source()).value();
  // "bc" is merged first, and then "a" has no rule with it, although "abc" is a token.
  EXPECT_EQ(encode_text(*tokenizer, "abc"), (Ids{'a', bc}));
  EXPECT_EQ(encode_text(*tokenizer, "ab"), (Ids{ab}));
  EXPECT_EQ(tokenizer->token_bytes(abc), "abc");
  EXPECT_EQ(tokenizer->size(), 259);
}

TEST(TokenizerTest, AppendsAndReturnsNothingForEmptyText) {
  const auto tokenizer = nano_tokenizer();
  Ids ids{5};
  EXPECT_OK(tokenizer->encode_text("", ids));
  EXPECT_OK(tokenizer->encode_raw("", ids));
  EXPECT_OK(tokenizer->encode({}, ids));
  EXPECT_EQ(ids, Ids{5});
}

TEST(TokenizerTest, RoundTripsEveryScalarValue) {
  const auto tokenizer = nano_tokenizer();
  Ids ids;
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(c, text);
    ids.clear();
    ASSERT_TRUE(tokenizer->encode_text(text, ids).ok()) << c;
    ASSERT_EQ(tokenizer->decode(ids, /*skip_special=*/true), text) << c;
  }
}

TEST(TokenizerTest, RoundTripsRandomText) {
  const auto tokenizer = nano_tokenizer();
  Rng rng(99);
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(rng.next() >> 32) % n; };
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (uint32_t i = pick(60); i > 0; --i) {
      const uint32_t kind = pick(5);
      if (kind == 0) append_utf8(pick(0xD800), text);
      if (kind == 1) append_utf8(0xE000 + pick(0x110000 - 0xE000), text);
      if (kind == 2) text += static_cast<char>(pick(128));
      // Any token whose bytes are whole characters, special spellings among them.
      const std::string_view bytes = tokenizer->token_bytes(
          static_cast<int32_t>(pick(static_cast<uint32_t>(tokenizer->size()))));
      if (kind >= 3 && !find_invalid_utf8(bytes).has_value()) text += bytes;
    }
    const Ids ids = encode_text(*tokenizer, text);
    ASSERT_FALSE(has_special(*tokenizer, ids)) << text;
    ASSERT_EQ(tokenizer->decode(ids, /*skip_special=*/true), text);
    ASSERT_EQ(tokenizer->decode(encode_raw(*tokenizer, text), /*skip_special=*/false), text);
  }
}

TEST(TokenizerTest, NeverMakesAControlTokenOfText) {
  const auto tokenizer = nano_tokenizer();
  int num_special = 0;
  for (int32_t id = 0; id < tokenizer->size(); ++id) {
    if (!tokenizer->is_special(id)) continue;
    ++num_special;
    const std::string spelling(tokenizer->token_bytes(id));
    EXPECT_EQ(tokenizer->special_id(spelling), id);
    EXPECT_EQ(encode_raw(*tokenizer, spelling), Ids{id});
    EXPECT_FALSE(has_special(*tokenizer, encode_text(*tokenizer, spelling))) << spelling;
    Ids ids;
    // Not even when the spelling is put together from several pieces.
    EXPECT_OK(tokenizer->encode(
        std::vector<Piece>{text_piece(spelling.substr(0, 1)), text_piece(spelling.substr(1))},
        ids));
    EXPECT_FALSE(has_special(*tokenizer, ids)) << spelling;
  }
  EXPECT_EQ(num_special, 11);
}

TEST(TokenizerTest, B010KeepsAReplayedTagAsText) {
  const auto tokenizer = nano_tokenizer();
  const int32_t end_think = tokenizer->special_id("</think>").value();
  const std::vector<Piece> pieces{
      control_piece("<｜Assistant｜>"), control_piece("</think>"),
      text_piece("hello </think> world"), control_piece("<｜User｜>"), text_piece("next")};
  Ids ids;
  ASSERT_OK(tokenizer->encode(pieces, ids));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end_think), 1);
  EXPECT_EQ(ids[1], end_think);
  EXPECT_EQ(
      tokenizer->decode(ids, /*skip_special=*/false),
      "<｜Assistant｜></think>hello </think> world<｜User｜>next");
  EXPECT_EQ(tokenizer->decode(ids, /*skip_special=*/true), "hello </think> worldnext");
}

TEST(TokenizerTest, JoinsNeighbouringTextPieces) {
  const auto tokenizer = nano_tokenizer();
  const std::string text = "The quick 毕老师 fox";
  Ids ids;
  std::vector<Piece> bytes;
  for (const char c : text) bytes.push_back(text_piece(std::string(1, c)));
  ASSERT_OK(tokenizer->encode(bytes, ids));
  EXPECT_EQ(ids, encode_text(*tokenizer, text));
}

TEST(TokenizerTest, RefusesAControlPieceThatIsNoSpecialToken) {
  const auto tokenizer = nano_tokenizer();
  Ids ids{1};
  const std::vector<Piece> pieces{text_piece("a"), control_piece("<|nobody|>")};
  EXPECT_ERROR(
      tokenizer->encode(pieces, ids), StatusCode::kInvalidArgument,
      "prompt piece 1: \"<|nobody|>\" is no special token");
  EXPECT_EQ(ids, Ids{1});
}

TEST(TokenizerTest, RefusesTextThatIsNotUtf8) {
  const auto tokenizer = nano_tokenizer();
  Ids ids{1};
  EXPECT_ERROR(
      tokenizer->encode_text("ab\xC4\xE3", ids), StatusCode::kInvalidArgument,
      "not UTF-8 at byte 2");
  EXPECT_ERROR(
      tokenizer->encode_raw("<think>\xED\xA0\x80", ids), StatusCode::kInvalidArgument,
      "not UTF-8 at byte 7");
  const std::vector<Piece> pieces{control_piece("<think>"), text_piece("a"), text_piece("\xFF")};
  EXPECT_ERROR(
      tokenizer->encode(pieces, ids), StatusCode::kInvalidArgument,
      "text from prompt piece 1 is not UTF-8 at byte 1");
  EXPECT_EQ(ids, Ids{1});
}

TEST(TokenizerTest, EncodesAMegabyteInOnePiece) {
  const auto tokenizer = nano_tokenizer();
  for (const std::string unit : {"a", "毕", " ", "\n", "-", "\u200B", "xy"}) {
    std::string text;
    while (text.size() < (1u << 20)) text += unit;
    ASSERT_EQ(tokenizer->decode(encode_text(*tokenizer, text), true), text) << unit;
  }
}

TEST(TokenizerTest, GivesTheSameIdsOnEveryThread) {
  const auto tokenizer = nano_tokenizer();
  std::string text;
  for (int i = 0; i < 500; ++i) text += "Some words, 毕老师 and " + std::to_string(i * i) + "\n";
  const Ids expected = encode_text(*tokenizer, text);
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& ids : results) {
    threads.emplace_back([&] { EXPECT_OK(tokenizer->encode_raw(text, ids)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : results) EXPECT_EQ(ids, expected);
}

TEST(TokenizerTest, AnswersForIdsOutOfRange) {
  const auto tokenizer = nano_tokenizer();
  for (const int32_t id : {-1, INT32_MIN, tokenizer->size(), INT32_MAX}) {
    EXPECT_EQ(tokenizer->token_bytes(id), "");
    EXPECT_FALSE(tokenizer->is_special(id));
    EXPECT_EQ(tokenizer->decode(Ids{id}, false), "");
  }
}

TEST(VocabularyTest, TakesSpecialTokensFromTheirTypes) {
  Vocabulary vocabulary;
  const int32_t control = vocabulary.add("<c>", 3);
  const int32_t user = vocabulary.add("<u>", 4);
  const int32_t unused = vocabulary.add("<n>", 5);
  const int32_t literal = vocabulary.add("<｜x｜>", 1);  // no text is written like this
  const auto tokenizer = Tokenizer::create(vocabulary.source()).value();
  EXPECT_EQ(encode_raw(*tokenizer, "<c><u>"), (Ids{control, user}));
  EXPECT_EQ(encode_raw(*tokenizer, "<n>"), (Ids{'<', 'n', '>'}));
  EXPECT_EQ(tokenizer->token_bytes(unused), "<n>");
  EXPECT_FALSE(tokenizer->is_special(unused));
  EXPECT_EQ(encode_raw(*tokenizer, "<｜x｜>"), Ids{literal});
  EXPECT_TRUE(tokenizer->is_special(literal));
}

TEST(VocabularyTest, TakesSpecialTokensFromTheMergesIfThereAreNoTypes) {
  Vocabulary vocabulary;
  const int32_t ab = vocabulary.merge("a", "b");
  const int32_t think = vocabulary.add("<think>");
  vocabulary.token_types.clear();
  const auto tokenizer = Tokenizer::create(vocabulary.source()).value();
  EXPECT_EQ(encode_raw(*tokenizer, "ab<think>"), (Ids{ab, think}));
  EXPECT_FALSE(tokenizer->is_special(ab));
  EXPECT_FALSE(tokenizer->is_special('<'));
}

TEST(VocabularyTest, B005KeepsByteTokenSpellingsAsPlainText) {
  Vocabulary vocabulary;
  for (const char* text : {"<0x-1>", "<0xZZ>", "<0x0A>", "<0x>", "<0x100>"}) {
    const int32_t id = vocabulary.add(text, 6);
    const auto tokenizer = Tokenizer::create(vocabulary.source()).value();
    EXPECT_EQ(tokenizer->token_bytes(id), text);
    EXPECT_EQ(tokenizer->decode(encode_raw(*tokenizer, text), false), text);
    EXPECT_EQ(encode_raw(*tokenizer, "\n").size(), 1u);
  }
}

TEST(VocabularyTest, B007RefusesArraysOfDifferentLengths) {
  Vocabulary vocabulary;
  vocabulary.token_types.pop_back();
  EXPECT_ERROR(
      Tokenizer::create(vocabulary.source()), StatusCode::kInvalidArgument,
      "255 token types for 256 tokens");
  vocabulary.token_types.resize(300, 1);
  EXPECT_ERROR(
      Tokenizer::create(vocabulary.source()), StatusCode::kInvalidArgument,
      "300 token types for 256 tokens");
}

TEST(VocabularyTest, RefusesBadTokens) {
  EXPECT_ERROR(
      Tokenizer::create({{}, {}, {}, "deepseek-v3"}), StatusCode::kInvalidArgument, "0 tokens");
  const auto refuses = [](auto change, std::string_view message) {
    Vocabulary vocabulary;
    change(vocabulary);
    EXPECT_ERROR(Tokenizer::create(vocabulary.source()), StatusCode::kInvalidArgument, message);
  };
  refuses([](Vocabulary& v) { v.add(""); }, "token 256 is empty");
  refuses([](Vocabulary& v) { v.add("x", 0); }, "token 256 has type 0");
  refuses([](Vocabulary& v) { v.add("x", 7); }, "token 256 has type 7");
  refuses([](Vocabulary& v) { v.add("a"); }, "tokens 97 and 256 are both \"a\"");
  refuses(
      [](Vocabulary& v) {
        v.add("<s>", 3);
        v.add("<s>", 4);
      },
      "special tokens 256 and 257 are both \"<s>\"");
  refuses(
      [](Vocabulary& v) { v.add("\xBD\x9C", 3); },
      "special token 256 \"\uFFFD\uFFFD\" is not UTF-8");
  refuses([](Vocabulary& v) { v.add(std::string(1025, 'x'), 3); }, "1025 bytes, at most 1024");
  refuses([](Vocabulary& v) { v.tokens['q'] = "qq"; }, "no token for byte 113");
}

TEST(VocabularyTest, RefusesMoreThanItsLimits) {
  Vocabulary vocabulary;
  VocabularySource source = vocabulary.source();
  source.merges.assign(static_cast<size_t>(kMergesMax) + 1, "a b");
  EXPECT_ERROR(Tokenizer::create(source), StatusCode::kInvalidArgument, "2097153 merges");
  source = vocabulary.source();
  const std::string huge(static_cast<size_t>(kVocabularyBytesMax), 'x');
  source.tokens.push_back(huge);
  source.token_types.push_back(3);
  EXPECT_ERROR(Tokenizer::create(source), StatusCode::kInvalidArgument, "exceed 67108864 bytes");
  source = vocabulary.source();
  source.tokens.resize(static_cast<size_t>(kVocabMax) + 1, "x");
  EXPECT_ERROR(Tokenizer::create(source), StatusCode::kInvalidArgument, "1048577 tokens");
}

TEST(VocabularyTest, RefusesBadMerges) {
  const auto refuses = [](const char* merge, std::string_view message) {
    Vocabulary vocabulary;
    vocabulary.merge("a", "b");
    vocabulary.merges.emplace_back(merge);
    EXPECT_ERROR(Tokenizer::create(vocabulary.source()), StatusCode::kInvalidArgument, message);
  };
  refuses("ab", "merge 1 \"ab\" is not two texts");
  refuses("a b c", "is not two texts");
  refuses("你 b", "is not byte-level text");
  refuses("abx b", "its left side is no token");
  refuses("a bx", "its right side is no token");
  refuses(" b", "its left side is no token");
  refuses("b a", "its result is no token");
  refuses("a b", "is there twice");
}

TEST(VocabularyTest, RefusesAnUnknownPreTokenizer) {
  Vocabulary vocabulary;
  vocabulary.pre = "llama-bpe";
  EXPECT_ERROR(
      Tokenizer::create(vocabulary.source()), StatusCode::kUnimplemented,
      "pre-tokenizer \"llama-bpe\" is not known");
}

}  // namespace
}  // namespace tandem::test
