#include "coordinator/sampling/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

TEST(Utf8Test, TellsUtf8FromOtherBytes) {
  for (const char* good :
       {"", "a", "\xC2\x80", "\xE4\xBD\xA0", "\xED\x9F\xBF", "\xF0\x9F\x98\x80",
        "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  // A lone continuation, long forms, a surrogate, above U+10FFFF, and characters cut short.
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xE4\xBD", "a\xF0\x9F\x98", "\xC2z"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
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

}  // namespace
}  // namespace tandem
