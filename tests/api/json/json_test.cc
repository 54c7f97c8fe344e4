#include "api/json/json.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace tandem::api {
namespace {

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') +
         std::string(static_cast<size_t>(depth), ']');
}

TEST(JsonTest, KeepsTheOrderOfKeys) {
  const auto json = parse_json(R"({"z": 1, "a": {"y": 2, "b": [3, null, true]}})");
  EXPECT_OK(json.status());
  EXPECT_EQ(json_text(*json), R"({"z":1,"a":{"y":2,"b":[3,null,true]}})");
}

TEST(JsonTest, B058NestsUpToTheLimitAndNoFurther) {
  EXPECT_OK(parse_json(nested(128)).status());
  EXPECT_ERROR(parse_json(nested(129)).status(), StatusCode::kInvalidArgument, "deeper");
  EXPECT_ERROR(parse_json(nested(60000)).status(), StatusCode::kInvalidArgument, "deeper");
  EXPECT_ERROR(
      parse_json(std::string(60000, '[')).status(), StatusCode::kInvalidArgument, "deeper");
  std::string objects;
  for (int i = 0; i < 10000; ++i) objects += R"({"a":)";
  EXPECT_ERROR(parse_json(objects).status(), StatusCode::kInvalidArgument, "deeper");
}

TEST(JsonTest, RefusesWhatIsNotOneJsonValue) {
  for (const char* text :
       {"", "{", "{} x", "{,}", "{\"a\":1,}", "nul", "[1 2]", "\"\x80\"", "1e999", "NaN",
        "{\"a\":1,\"a\":2}", "'a'", "\"\\ud800x"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(parse_json(text).ok());
  }
}

TEST(JsonTest, B011RefusesBytesThatAreNoUtf8) {
  EXPECT_ERROR(
      parse_json("{\"a\": \"\xc4\xe3\xba\xc3\"}").status(), StatusCode::kInvalidArgument, "UTF-8");
}

TEST(JsonTest, BoundsTheNumberOfValues) {
  JsonLimits limits;
  limits.values_max = 4;
  EXPECT_OK(parse_json("[1,2,3]", limits).status());
  EXPECT_ERROR(parse_json("[1,2,3,4]", limits).status(), StatusCode::kInvalidArgument, "more than");
}

TEST(JsonTest, LoneSurrogatesBecomeTheReplacementCharacter) {
  const auto text = [](const char* json) { return parse_json(json)->get<std::string>(); };
  EXPECT_EQ(text(R"("\ud83d\ude00")"), "\U0001F600");
  EXPECT_EQ(text(R"("a\ud83d")"), "a\uFFFD");
  EXPECT_EQ(text(R"("\ude00b")"), "\uFFFDb");
  EXPECT_EQ(text(R"("\ud83d\ud83d\ude00")"), "\uFFFD\U0001F600");
  EXPECT_EQ(text(R"("\\ud83d")"), R"(\ud83d)");
  EXPECT_EQ(text(R"("\\\ud83d")"), "\\\uFFFD");
}

TEST(JsonTest, ManyKeysInOneObjectTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  const auto json = parse_json(text + "}");
  EXPECT_OK(json.status());
  EXPECT_EQ(json->size(), 200000u);
}

}  // namespace
}  // namespace tandem::api
