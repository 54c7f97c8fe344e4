#include "model/families/deepseek_v4/json_text.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace tandem::v4 {
namespace {

std::string python(std::string_view text) {
  const auto json = respace_json(text, JsonStyle::kPython);
  EXPECT_OK(json);
  return json.ok() ? *json : std::string();
}

TEST(JsonTextTest, SpacesAsPythonDoes) {
  EXPECT_EQ(
      python(" { \"b\" :[1,2 ,\n{}] ,\"a\":null,\"c\":[ ]}"),
      "{\"b\": [1, 2, {}], \"a\": null, \"c\": []}");
  EXPECT_EQ(python("true"), "true");
}

TEST(JsonTextTest, KeepsTheSpellingOfNumbers) {
  EXPECT_EQ(
      python("[1.0,1e5,-0.5E-3,123456789012345678901234567890]"),
      "[1.0, 1e5, -0.5E-3, 123456789012345678901234567890]");
}

TEST(JsonTextTest, WritesStringsAsPythonDoes) {
  // Expected values: json.dumps(json.loads(text), ensure_ascii=False) of Python 3.11.
  EXPECT_EQ(
      python(R"("\u00e9\/\u0041\u0007\u001f\u007f\n\"\\")"),
      "\"é/A\\u0007\\u001f\x7f\\n\\\"\\\\\"");
  EXPECT_EQ(python(R"("\ud83d\ude00")"), "\"😀\"");
  EXPECT_EQ(python(R"("\ud83dx")"), "\"\\ud83dx\"");  // no UTF-8 form: stays an escape
}

TEST(JsonTextTest, CopiesStringsInCompactStyle) {
  const auto json = respace_json("{ \"k\" : \"\\u00e9\\/\" , \"n\" : [ 1 ] }", JsonStyle::kCompact);
  ASSERT_OK(json);
  EXPECT_EQ(*json, "{\"k\":\"\\u00e9\\/\",\"n\":[1]}");
}

TEST(JsonTextTest, RefusesWhatIsNotJson) {
  for (const char* text :
       {"",      " ",   "{",        "[1,]",     "{\"a\":1,}", "{a:1}",     "{\"a\" 1}",
        "[1 2]", "01",  "1.",       ".5",       "1e",         "-",         "+1",
        "NaN",   "tru", "\"a",      "\"\n\"",   "\"\\x\"",    "\"\\u12\"", "\"\\u12g4\"",
        "1 1",   "[1}", "\"\xFF\"", "\"\xC3\"", "'a'",        "\"a\\"}) {
    SCOPED_TRACE(text);
    EXPECT_ERROR(respace_json(text, JsonStyle::kPython), StatusCode::kInvalidArgument, "JSON byte");
  }
}

TEST(JsonTextTest, BoundsDepthAndSize) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_OK(respace_json(nested(kJsonDepthMax), JsonStyle::kPython));
  EXPECT_ERROR(
      respace_json(nested(kJsonDepthMax + 1), JsonStyle::kPython), StatusCode::kInvalidArgument,
      "nested too deep");
  const std::string digits(kJsonBytesMax, '1');
  EXPECT_OK(respace_json(digits, JsonStyle::kPython));
  EXPECT_ERROR(
      respace_json(digits + "1", JsonStyle::kPython), StatusCode::kInvalidArgument, "limit");
}

TEST(JsonTextTest, ListsMembersInOrderWithTheLastValueOfARepeatedKey) {
  const auto members =
      json_members(R"({"z":"a\nb","y":{"k":[1]},"z":2,"\u0061":""})", JsonStyle::kPython);
  ASSERT_OK(members);
  ASSERT_EQ(members->size(), 3u);
  EXPECT_EQ((*members)[0].key, "z");
  EXPECT_EQ((*members)[0].value, "2");
  EXPECT_FALSE((*members)[0].is_string);
  EXPECT_EQ((*members)[1].value, "{\"k\": [1]}");
  EXPECT_EQ((*members)[2].key, "a");
  EXPECT_EQ((*members)[2].value, "");
  EXPECT_TRUE((*members)[2].is_string);
  EXPECT_ERROR(
      json_members("[]", JsonStyle::kPython), StatusCode::kInvalidArgument, "not an object");
  EXPECT_ERROR(
      json_members("{} x", JsonStyle::kPython), StatusCode::kInvalidArgument, "text after");
}

TEST(JsonTextTest, ListsItems) {
  const auto items = json_items("[1, {\"a\":2}]", JsonStyle::kPython);
  ASSERT_OK(items);
  EXPECT_EQ(*items, (std::vector<std::string>{"1", "{\"a\": 2}"}));
  EXPECT_ERROR(json_items("{}", JsonStyle::kPython), StatusCode::kInvalidArgument, "not an array");
}

}  // namespace
}  // namespace tandem::v4
