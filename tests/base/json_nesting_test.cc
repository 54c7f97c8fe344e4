#include "base/json_nesting.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem {
namespace {

TEST(JsonNestingTest, CountsOpenContainers) {
  EXPECT_EQ(json_nesting(""), 0);
  EXPECT_EQ(json_nesting("12"), 0);
  EXPECT_EQ(json_nesting("[]"), 1);
  EXPECT_EQ(json_nesting(R"({"a": [1, {"b": 2}], "c": [[3]]})"), 3);
  EXPECT_EQ(json_nesting(std::string(100'000, '[')), 100'000);
}

TEST(JsonNestingTest, BracketsInStringsDoNotCount) {
  EXPECT_EQ(json_nesting(R"(["[[[", "\"[[", "\\"])"), 1);
  EXPECT_EQ(json_nesting(R"({"[{": "\\\"{"})"), 1);
}

TEST(JsonNestingTest, TakesATextThatEndsAnywhere) {
  const std::string text = R"({"a": "x\"y", "b": [1]})";
  for (size_t size = 0; size <= text.size(); ++size) {
    EXPECT_LE(json_nesting(text.substr(0, size)), 2);
  }
  EXPECT_EQ(json_nesting("]]]["), 0);  // what closes without an opener makes room for one
}

}  // namespace
}  // namespace tandem
