#include "base/utf8.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace tandem {
namespace {

std::string utf8(uint32_t code_point) {
  std::string text;
  append_utf8(code_point, text);
  return text;
}

TEST(Utf8Test, AcceptsEveryScalarValue) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string text = utf8(c);
    ASSERT_FALSE(find_invalid_utf8(text).has_value()) << c;
    ASSERT_EQ(utf8_front(text).code_point, c);
    ASSERT_EQ(utf8_front(text).num_bytes, text.size());
  }
}

TEST(Utf8Test, RefusesEverySurrogate) {
  for (uint32_t c = 0xD800; c <= 0xDFFF; ++c) {
    ASSERT_EQ(find_invalid_utf8("ab" + utf8(c)), 2u) << c;
  }
}

TEST(Utf8Test, NamesTheOffsetOfTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("0123456789\x80"), 10u);
  EXPECT_EQ(find_invalid_utf8("\xC0\xAF"), 0u);           // overlong
  EXPECT_EQ(find_invalid_utf8("x\xE0\x80\xAF"), 1u);      // overlong
  EXPECT_EQ(find_invalid_utf8("x\xF0\x80\x80\xAF"), 1u);  // overlong
  EXPECT_EQ(find_invalid_utf8("\xF4\x90\x80\x80"), 0u);   // past U+10FFFF
  EXPECT_EQ(find_invalid_utf8("\xF5\x80\x80\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xE4\xBD\xA0\xE5\xA5"), 3u);  // cut off
  EXPECT_EQ(
      find_invalid_utf8("\xE4\xBD"
                        "a"),
      0u);
  EXPECT_EQ(find_invalid_utf8("\xC4\xE3\xBA\xC3"), 0u);  // GBK
}

TEST(Utf8Test, CountsTheBytesOfAnUnfinishedCharacter) {
  const std::string smile = "x\xF0\x9F\x98\x80";
  EXPECT_EQ(incomplete_utf8_tail(smile.substr(0, 1)), 0u);
  EXPECT_EQ(incomplete_utf8_tail(smile.substr(0, 2)), 1u);
  EXPECT_EQ(incomplete_utf8_tail(smile.substr(0, 3)), 2u);
  EXPECT_EQ(incomplete_utf8_tail(smile.substr(0, 4)), 3u);
  EXPECT_EQ(incomplete_utf8_tail(smile), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\xE4\xBD"), 2u);
}

TEST(Utf8Test, DoesNotWaitForWhatCannotBecomeACharacter) {
  EXPECT_EQ(incomplete_utf8_tail("\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\xE0\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\xFF"), 0u);
  EXPECT_EQ(incomplete_utf8_tail(""), 0u);
}

TEST(Utf8Test, ReplacesMaximalIllFormedParts) {  // the example of Unicode 15, table 3-8
  EXPECT_EQ(
      repair_utf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
      "a\uFFFD\uFFFD\uFFFD"
      "b\uFFFD"
      "c\uFFFD\uFFFD"
      "d");
  EXPECT_EQ(repair_utf8("\xE4\xBD"), "\uFFFD");
  EXPECT_EQ(repair_utf8("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repair_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
}

TEST(Utf8Test, RepairDoesNotDependOnTheSplit) {
  Rng rng(5);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 24; ++i) {
      const uint64_t pick = rng.next() >> 32;
      if (pick % 3 == 0) {
        bytes += utf8(static_cast<uint32_t>(pick / 3 % 0xD800));
      } else {
        bytes += static_cast<char>(pick >> 8 | 0x80);
      }
      if (pick % 7 == 0) bytes.resize(bytes.size() - 1);
    }
    const std::string whole = repair_utf8(bytes);
    ASSERT_FALSE(find_invalid_utf8(whole).has_value());
    if (!find_invalid_utf8(bytes).has_value()) {
      ASSERT_EQ(whole, bytes);
    }
    Utf8Repair repair;
    std::string parts;
    for (size_t at = 0; at < bytes.size();) {
      const size_t n = 1 + (rng.next() >> 32) % 5;
      repair.push(std::string_view(bytes).substr(at, n), parts);
      ASSERT_FALSE(find_invalid_utf8(parts).has_value()) << "part of a character came out";
      at += n;
    }
    repair.finish(parts);
    ASSERT_EQ(parts, whole);
  }
}

TEST(Utf8Test, RepairIsReadyAgainAfterFinish) {
  Utf8Repair repair;
  std::string out;
  repair.push("\xE4\xBD", out);
  repair.finish(out);
  repair.push("\xA0ok", out);
  EXPECT_EQ(out, "\uFFFD\uFFFDok");
}

}  // namespace
}  // namespace tandem
