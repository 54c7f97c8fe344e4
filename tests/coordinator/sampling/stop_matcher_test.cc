#include "coordinator/sampling/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

StopMatcher matcher(std::vector<std::string> stop_strings) {
  return std::move(StopMatcher::create(std::move(stop_strings)).value());
}

struct Outcome {
  std::string shown;
  std::optional<size_t> hit;
  bool operator==(const Outcome&) const = default;
};

/// The rule on finished text, in its simplest form.
Outcome cut(const std::string& text, const std::vector<std::string>& stop_strings) {
  for (size_t start = 0; start < text.size(); ++start) {
    for (size_t i = 0; i < stop_strings.size(); ++i) {
      if (!stop_strings[i].empty() &&
          text.compare(start, stop_strings[i].size(), stop_strings[i]) == 0) {
        return {text.substr(0, start), i};
      }
    }
  }
  return {text, std::nullopt};
}

TEST(StopMatcherTest, CutsAtTheStopStringAndDropsTheRest) {
  StopMatcher stop = matcher({"END"});
  EXPECT_EQ(stop.push("abc EN"), "abc ");
  EXPECT_FALSE(stop.hit());
  EXPECT_EQ(stop.push("D tail"), "");
  EXPECT_EQ(stop.hit(), 0u);
  EXPECT_EQ(stop.shown_bytes(), 4);
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.finish(), "");
  EXPECT_EQ(stop.shown_bytes(), 4);
}

TEST(StopMatcherTest, ReleasesWhatTurnedOutToBeText) {
  StopMatcher stop = matcher({"END"});
  EXPECT_EQ(stop.push("EN"), "");
  EXPECT_EQ(stop.push("EN"), "EN");
  EXPECT_EQ(stop.push("TER"), "ENTER");
  EXPECT_EQ(stop.push("E"), "");
  EXPECT_EQ(stop.finish(), "E");
  EXPECT_FALSE(stop.hit());
  EXPECT_EQ(stop.shown_bytes(), 8);
}

TEST(StopMatcherTest, PrefersTheEarliestStart) {
  StopMatcher longer = matcher({"bc", "abcd"});
  EXPECT_EQ(longer.push("xabc"), "x");
  EXPECT_FALSE(longer.hit()) << "\"abcd\" would start earlier and can still come";
  EXPECT_EQ(longer.push("d"), "");
  EXPECT_EQ(longer.hit(), 1u);

  StopMatcher shorter = matcher({"bc", "abcd"});
  EXPECT_EQ(shorter.push("xabc"), "x");
  EXPECT_EQ(shorter.push("!"), "a");
  EXPECT_EQ(shorter.hit(), 0u);

  StopMatcher at_end = matcher({"bc", "abcd"});
  EXPECT_EQ(at_end.push("xabc"), "x");
  EXPECT_EQ(at_end.finish(), "a");
  EXPECT_EQ(at_end.hit(), 0u);
}

TEST(StopMatcherTest, ResolvesEqualStartsByListOrder) {
  StopMatcher short_first = matcher({"ab", "abc"});
  EXPECT_EQ(short_first.push("ab"), "");
  EXPECT_EQ(short_first.hit(), 0u);

  StopMatcher long_first = matcher({"abc", "ab"});
  EXPECT_EQ(long_first.push("ab"), "");
  EXPECT_FALSE(long_first.hit());
  EXPECT_EQ(long_first.push("c"), "");
  EXPECT_EQ(long_first.hit(), 0u);
}

TEST(StopMatcherTest, HoldsAnIncompleteCharacterWithoutStopStrings) {
  StopMatcher stop = matcher({});
  EXPECT_EQ(stop.push("a\xE4\xBD"), "a");
  EXPECT_EQ(stop.push("\xA0z\xF0"), "\xE4\xBD\xA0z");
  EXPECT_EQ(stop.finish(), "\xF0");
}

TEST(StopMatcherTest, IgnoresEmptyStringsAndKeepsTheCallersIndices) {
  StopMatcher stop = matcher({"", "#"});
  EXPECT_EQ(stop.push("a#b"), "a");
  EXPECT_EQ(stop.hit(), 1u);
}

TEST(StopMatcherTest, RefusesTooManyTooLongAndBrokenStrings) {
  const auto count = static_cast<size_t>(kStopStringsMax);
  const auto length = static_cast<size_t>(kStopStringBytesMax);
  EXPECT_OK(StopMatcher::create(std::vector<std::string>(count, std::string(length, 'x'))));
  EXPECT_ERROR(
      StopMatcher::create(std::vector<std::string>(count + 1, "x")), StatusCode::kInvalidArgument,
      "stop has 17 strings, must be from 0 to 16");
  EXPECT_ERROR(
      StopMatcher::create({"ok", std::string(length + 1, 'x')}), StatusCode::kInvalidArgument,
      "stop[1] has 257 bytes, must be from 0 to 256");
  EXPECT_ERROR(StopMatcher::create({"\xC3"}), StatusCode::kInvalidArgument, "stop[0] is not UTF-8");
}

/// Texts over a small alphabet, with a two-byte character, so that near-matches are common.
std::string random_text(Rng* rng, size_t pieces) {
  static const char* const kPieces[] = {"a", "b", "c", "\xC3\xA9", "\xE2\x82\xAC"};
  std::string text;
  for (size_t i = 0; i < pieces; ++i) text += kPieces[rng->next() % 5];
  return text;
}

TEST(StopMatcherTest, GivesTheSameResultForAnySplit) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    std::vector<std::string> stop_strings(rng.next() % 4);
    size_t longest = 1;
    for (std::string& stop : stop_strings) {
      stop = random_text(&rng, rng.next() % 5);
      longest = std::max(longest, stop.size());
    }
    const std::string text = random_text(&rng, rng.next() % 40);
    StopMatcher stop = matcher(stop_strings);
    std::string shown;
    for (size_t begin = 0; begin < text.size() && !stop.hit();) {
      const size_t size = std::min<size_t>(rng.next() % 4, text.size() - begin);
      shown += stop.push(std::string_view(text).substr(begin, size));
      begin += size;
      if (!stop.hit()) {
        ASSERT_LE(begin - shown.size(), std::max<size_t>(longest - 1, 3)) << "seed=" << seed;
      }
      const bool at_boundary =
          shown.size() == text.size() || (text[shown.size()] & '\xC0') != '\x80';
      ASSERT_TRUE(at_boundary) << "seed=" << seed;
    }
    shown += stop.finish();
    ASSERT_EQ((Outcome{shown, stop.hit()}), cut(text, stop_strings)) << "seed=" << seed;
    ASSERT_EQ(stop.shown_bytes(), static_cast<int64_t>(shown.size()));
  }
}

}  // namespace
}  // namespace tandem
