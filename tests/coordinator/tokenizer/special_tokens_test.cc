#include "coordinator/tokenizer/special_tokens.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

std::vector<int32_t> all_ids(const SpecialTokens& specials, std::string_view text) {
  std::vector<int32_t> ids;
  size_t at = 0;
  while (const auto match = specials.next(text, at)) {
    ids.push_back(match->id);
    at = match->offset + match->num_bytes;
  }
  return ids;
}

TEST(SpecialTokensTest, FindsNothingWhenEmpty) {
  const SpecialTokens specials;
  EXPECT_EQ(specials.find("<a>"), std::nullopt);
  EXPECT_FALSE(specials.next("<a>", 0).has_value());
}

TEST(SpecialTokensTest, PrefersTheLeftmostThenTheLongest) {
  const SpecialTokens specials({{"<a", 1}, {"<a>b", 2}, {"a>bcd", 3}, {"<a>bc", 4}, {"x", 5}});
  EXPECT_EQ(all_ids(specials, "<a>bcd"), (std::vector<int32_t>{4}));
  EXPECT_EQ(all_ids(specials, "<a>b<a>"), (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(all_ids(specials, "a>bc a>bcd"), (std::vector<int32_t>{3}));
  EXPECT_EQ(all_ids(specials, "<<a"), (std::vector<int32_t>{1}));
  EXPECT_EQ(all_ids(specials, "xx<x"), (std::vector<int32_t>{5, 5, 5}));
}

TEST(SpecialTokensTest, ReportsTheMatchedSpan) {
  const SpecialTokens specials({{"｜DSML｜", 9}});
  const auto match = specials.next("<｜DSML｜invoke", 0);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->offset, 1u);
  EXPECT_EQ(match->num_bytes, 10u);
  EXPECT_FALSE(specials.next("<｜DSML｜invoke", 2).has_value());
}

TEST(SpecialTokensTest, FindsExactSpellingsOnly) {
  const SpecialTokens specials({{"<think>", 1}, {"</think>", 2}});
  EXPECT_EQ(specials.find("</think>"), 2);
  EXPECT_EQ(specials.find("<think"), std::nullopt);
  EXPECT_EQ(specials.find("<think> "), std::nullopt);
  EXPECT_EQ(specials.find(""), std::nullopt);
}

}  // namespace
}  // namespace tandem
