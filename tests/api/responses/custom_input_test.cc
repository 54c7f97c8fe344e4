#include "api/responses/custom_input.h"

#include <gtest/gtest.h>

#include "api/json/json.h"

namespace tandem {
namespace {

TEST(CustomInputTest, TakesTheInput) {
  EXPECT_EQ(api::custom_input(R"({"input":"a\n\"b\"\\\t\u00e9\ud83d\ude00/"})"), "a\n\"b\"\\\té😀/");
  EXPECT_EQ(api::custom_input(R"( { "input" : "a" , "more": 1 })"), "a");
  EXPECT_EQ(api::custom_input(R"({"input":""})"), "");
}

TEST(CustomInputTest, ReplacesHalfSurrogates) {
  EXPECT_EQ(api::custom_input(R"({"input":"\ud83dx"})"), "\uFFFDx");
  EXPECT_EQ(api::custom_input(R"({"input":"\ud83d\n"})"), "\uFFFD\n");
  EXPECT_EQ(api::custom_input(R"({"input":"\ud83d\ud83d\ude00"})"), "\uFFFD😀");
  EXPECT_EQ(api::custom_input(R"({"input":"\ude00"})"), "\uFFFD");
  EXPECT_EQ(api::custom_input(R"({"input":"\ud83d"})"), "\uFFFD");
}

TEST(CustomInputTest, TakesWhatStandsForTheInput) {
  EXPECT_EQ(api::custom_input(R"({"patch":"p"})"), "p");
  EXPECT_EQ(api::custom_input(R"({"a":1,"input":"i"})"), "i");
  EXPECT_EQ(api::custom_input(R"({"a":1,"b":2})"), R"({"a":1,"b":2})");
  EXPECT_EQ(api::custom_input(R"({"input":7})"), R"({"input":7})");
  EXPECT_EQ(api::custom_input("{}"), "{}");
}

TEST(CustomInputTest, AnySplitGivesTheSameText) {
  for (const std::string json :
       {R"({"input":"a\n\"b\"\\\u00e9\ud83d\ude00é\ud83d"})", R"({"patch":"p\n"})", R"({"a":1})"}) {
    const std::string whole = api::custom_input(json);
    for (size_t cut = 0; cut <= json.size(); ++cut) {
      api::CustomInput reader;
      std::string out;
      reader.push(std::string_view(json).substr(0, cut), out);
      reader.push(std::string_view(json).substr(cut), out);
      reader.finish(out);
      EXPECT_EQ(out, whole) << json << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace tandem
