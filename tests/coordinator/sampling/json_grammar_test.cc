#include "coordinator/sampling/json_grammar.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/limits.h"
#include "coordinator/sampling/json_machine.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

enum class Verdict { kWhole, kPrefix, kRefused };

std::ostream& operator<<(std::ostream& out, Verdict verdict) {
  return out
         << (verdict == Verdict::kWhole    ? "whole"
             : verdict == Verdict::kPrefix ? "prefix"
                                           : "refused");
}

Verdict judge(JsonGrammar grammar, const std::string& text) {
  JsonMachine machine(std::make_shared<const JsonGrammar>(std::move(grammar)));
  JsonMachine::FrameSet frames = machine.start();
  JsonMachine::FrameSet next;
  for (const char byte : text) {
    machine.step(frames, static_cast<uint8_t>(byte), &next);
    frames = next;
  }
  if (frames.empty()) return Verdict::kRefused;
  return machine.is_complete(frames) ? Verdict::kWhole : Verdict::kPrefix;
}

Verdict judge(const std::string& schema, const std::string& text) {
  Result<JsonGrammar> grammar = JsonGrammar::from_schema(schema);
  EXPECT_OK(grammar);
  return grammar.ok() ? judge(std::move(grammar).value(), text) : Verdict::kRefused;
}

struct Case {
  const char* schema;
  const char* text;
  Verdict verdict;
};

void check(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(judge(c.schema, c.text), c.verdict) << c.schema << "  " << c.text;
  }
}

constexpr auto kWhole = Verdict::kWhole;
constexpr auto kPrefix = Verdict::kPrefix;
constexpr auto kRefused = Verdict::kRefused;

TEST(JsonGrammarTest, AnyObjectTakesObjectsOnly) {
  const JsonGrammar grammar = JsonGrammar::any_object();
  EXPECT_EQ(judge(grammar, "{}"), kWhole);
  EXPECT_EQ(judge(grammar, " {\n  \"a\" : [ 1 , -2.5e+3, {\"b\": null} ], \"\": \"x\" }"), kWhole);
  EXPECT_EQ(judge(grammar, "{\"a\":1"), kPrefix);
  for (const char* text :
       {"[]", "1", "\"a\"", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{} ", "{}{", "{a",
        "{'a"}) {
    EXPECT_EQ(judge(grammar, text), kRefused) << text;
  }
}

TEST(JsonGrammarTest, FollowsJsonSpelling) {
  check({
      {R"({"type":"string"})", R"("a\"b\\\/\b\f\n\r\t\u00e9")", kWhole},
      {R"({"type":"string"})", "\"\xE4\xBD\xA0\x80\"", kWhole},
      {R"({"type":"string"})", R"("\x)", kRefused},
      {R"({"type":"string"})", R"("\u00g)", kRefused},
      {R"({"type":"string"})", "\"a\n", kRefused},
      {R"({"type":"number"})", "0", kWhole},
      {R"({"type":"number"})", "-0.5E-07", kWhole},
      {R"({"type":"number"})", "1.", kPrefix},
      {R"({"type":"number"})", "-", kPrefix},
      {R"({"type":"number"})", "1e", kPrefix},
      {R"({"type":"number"})", "1e99", kWhole},
      {R"({"type":"number"})", "1e100", kRefused},
      {R"({"type":"string"})", R"("\ud83D\uDe00")", kWhole},
      {R"({"type":"string"})", R"("\ud83d\u0)", kRefused},
      {R"({"type":"string"})", R"("\ud83d\ud8)", kRefused},
      {R"({"type":"string"})", R"("\ud83d\n)", kRefused},
      {R"({"type":"string"})", R"("\ud83d")", kRefused},
      {R"({"type":"string"})", R"("\ude)", kRefused},
      {R"({"type":"string"})", R"("\ud7ff\u1d8f\u0dde\ue000")", kWhole},
      {R"({"type":"number"})", "01", kRefused},
      {R"({"type":"number"})", ".5", kRefused},
      {R"({"type":"number"})", "+1", kRefused},
      {R"({"type":"number"})", "--1", kRefused},
      {R"({"type":"integer"})", "-120", kWhole},
      {R"({"type":"integer"})", "1.", kRefused},
      {R"({"type":"integer"})", "1e", kRefused},
      {R"({"type":"boolean"})", "true", kWhole},
      {R"({"type":"boolean"})", "fals", kPrefix},
      {R"({"type":"boolean"})", "nul", kRefused},
      {R"({"type":"null"})", "null", kWhole},
      {R"({"type":["string","null"]})", "null", kWhole},
      {R"({"type":["string","null"]})", "\"", kPrefix},
      {R"({"type":["string","null"]})", "1", kRefused},
      {R"({})", "[true,{\"a\":[null]}]", kWhole},
      {R"(true)", "3", kWhole},
  });
}

TEST(JsonGrammarTest, BoundsNumbersAndWhitespace) {
  EXPECT_EQ(judge(R"({"type":"number"})", std::string(32, '1')), kWhole);
  EXPECT_EQ(judge(R"({"type":"number"})", std::string(33, '1')), kRefused);
  EXPECT_EQ(judge(R"({"type":"number"})", std::string(31, '1') + "."), kRefused)
      << "no room for the digit";
  EXPECT_EQ(judge(R"({"type":"array"})", "[" + std::string(64, ' ') + "]"), kWhole);
  EXPECT_EQ(judge(R"({"type":"array"})", "[" + std::string(65, ' ')), kRefused);
}

TEST(JsonGrammarTest, TakesPropertiesInOrderAndRequiredOnes) {
  const char* schema = R"({"type":"object","properties":{"a":{"type":"integer"},
      "b":{"type":"boolean"},"c":{"type":"null"}},"required":["b"],"additionalProperties":false})";
  check({
      {schema, R"({"b":true})", kWhole},
      {schema, R"({"a":1,"b":true,"c":null})", kWhole},
      {schema, R"({"a":1,"b":true})", kWhole},
      {schema, R"({})", kRefused},
      {schema, R"({"a":1})", kRefused},
      {schema, R"({"c")", kRefused},
      {schema, R"({"b":true,"a")", kRefused},
      {schema, R"({"d")", kRefused},
      {schema, R"({"a":true)", kRefused},
      {schema, R"({"b":true,"c":null,)", kRefused},
      {schema, R"({"b":true,})", kRefused},
  });
  // Names that start alike, and a name that needs an escape.
  const char* alike = R"({"properties":{"ab":{"const":1},"a":{"const":2},"q\"":{"const":3}}})";
  check({
      {alike, R"({"ab":1,"a":2,"q\"":3})", kWhole},
      {alike, R"({"a":2})", kWhole},
      {alike, R"({"a":1)", kRefused},
  });
}

TEST(JsonGrammarTest, TakesMapsOfOneSchema) {
  const char* schema = R"({"type":"object","additionalProperties":{"type":"integer"}})";
  check({
      {schema, R"({"x":1,"y z":2})", kWhole},
      {schema, R"({"x":"1)", kRefused},
      {R"({"type":"object","additionalProperties":false})", "{}", kWhole},
      {R"({"type":"object","additionalProperties":false})", "{\"", kRefused},
  });
}

TEST(JsonGrammarTest, CountsItems) {
  const char* schema = R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})";
  check({
      {schema, "[]", kRefused},
      {schema, "[1]", kWhole},
      {schema, "[1, 2,3 ]", kWhole},
      {schema, "[1,2,3,", kRefused},
      {schema, "[1,]", kRefused},
      {schema, "[true", kRefused},
      {R"({"type":"array","minItems":2})", "[1]", kRefused},
      {R"({"type":"array","minItems":2})", "[1,2,3,4,5]", kWhole},
      {R"({"type":"array","maxItems":0})", "[]", kWhole},
      {R"({"type":"array","maxItems":0})", "[1", kRefused},
  });
}

TEST(JsonGrammarTest, TakesListedValues) {
  check({
      {R"({"enum":["red","green","re",1,12,null]})", "\"red\"", kWhole},
      {R"({"enum":["red","green","re",1,12,null]})", "\"re\"", kWhole},
      {R"({"enum":["red","green","re",1,12,null]})", "1", kWhole},
      {R"({"enum":["red","green","re",1,12,null]})", "12", kWhole},
      {R"({"enum":["red","green","re",1,12,null]})", "123", kRefused},
      {R"({"enum":["red","green","re",1,12,null]})", "\"blue", kRefused},
      {R"({"type":"string","enum":["a",1]})", "1", kRefused},
      {R"({"const":{"a":[1,2]}})", R"({"a":[1,2]})", kWhole},
      {R"({"items":{"enum":[1,12]}})", "[1,12,1]", kWhole},
  });
}

TEST(JsonGrammarTest, FollowsAlternativesAndReferences) {
  const char* either = R"({"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":
      "integer"}},"required":["k","x"]},{"type":"object","properties":{"k":{"const":"b"},"y":{"type":
      "boolean"}},"required":["k","y"]}]})";
  check({
      {either, R"({"k":"a","x":1})", kWhole},
      {either, R"({"k":"b","y":true})", kWhole},
      {either, R"({"k":"a","y")", kRefused},
  });
  const char* tree = R"({"$ref":"#/$defs/tree~1node","$defs":{"tree/node":{"type":"object",
      "properties":{"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":
      "#/$defs/tree~1node"}}},"required":["value"]}}})";
  check({
      {tree, R"({"value":1,"children":[{"value":2},{"value":3,"children":[]}]})", kWhole},
      {tree, R"({"value":1,"children":[1)", kRefused},
  });
  const char* list = R"({"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},
      {"type":"null"}]}},"required":["next"]})";
  check({{list, R"({"next":{"next":null}})", kWhole}, {list, R"({"next":{}})", kRefused}});
  // An alternative that is the schema itself adds nothing.
  check({{R"({"anyOf":[{"$ref":"#"},{"type":"integer"}]})", "7", kWhole}});
}

TEST(JsonGrammarTest, ClosesBeforeTheDepthBound) {
  const auto limit = static_cast<size_t>(kJsonDepthMax);
  const char* schema = R"({"type":"array"})";
  EXPECT_EQ(judge(schema, std::string(limit, '[') + std::string(limit, ']')), kWhole);
  EXPECT_EQ(judge(schema, std::string(limit + 1, '[')), kRefused);
  // At the last level an object whose property needs one more may not even open.
  const char* pairs = R"({"anyOf":[{"type":"array","items":{"$ref":"#"}},{"type":"object",
      "properties":{"p":{"type":"array","maxItems":0}},"required":["p"]}]})";
  EXPECT_EQ(judge(pairs, std::string(limit - 2, '[') + "{\"p\":[]}"), kPrefix);
  EXPECT_EQ(judge(pairs, std::string(limit - 1, '[') + "{"), kRefused);
}

TEST(B025, SchemaThatCannotBeCompiledIsRefusedByItsPart) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"object","properties":{"x":{"type":"string","pattern":"\\"}}})",
       "schema part #/properties/x/pattern: is not supported here"},
      {R"({"type":"string","format":"date"})", "#/format: is not supported"},
      {R"({"type":"strin"})", "#/type: must name JSON types"},
      {R"({"type":[]})", "#/type: must name a type"},
      {R"({"anyOf":[]})", "#/anyOf: must be an array"},
      {R"({"anyOf":[{"type":"null"},{"oneOf":[]}]})", "#/anyOf/1/oneOf: is not supported"},
      {R"({"anyOf":[{}],"type":"object"})", "#/type: is not supported here"},
      {R"({"$ref":"#/$defs/a"})", "\"#/$defs/a\" names no definition"},
      {R"({"$ref":"other.json"})", "names no definition"},
      {R"({"$ref":1})", "#/$ref: must be a string"},
      {R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"minimum":1}},"$ref":"#/$defs/a"})",
       "#/$defs/b/minimum: is not supported"},
      {R"({"properties":[]})", "#/properties: must be an object"},
      {R"({"properties":{"a":{}},"required":["b"]})", "\"b\" is not in properties"},
      {R"({"items":false})", "#/items: false admits no value"},
      {R"({"items":3})", "#/items: must be an object or true"},
      {R"({"minItems":-1})", "#/minItems: must be an integer"},
      {R"({"minItems":3,"maxItems":2})", "#/maxItems: 2 is less than minItems 3"},
      {R"({"enum":[]})", "leave no value"},
      {R"({"enum":["a"],"type":"integer"})", "leave no value"},
      {R"({"enum":["a"],"const":"b"})", "leave no value"},
      {R"({"type":)", "schema is not JSON"},
  };
  for (const auto& [schema, text] : cases) {
    EXPECT_ERROR(JsonGrammar::from_schema(schema), StatusCode::kInvalidArgument, text);
  }
}

TEST(JsonGrammarTest, RefusesSchemasWithoutAFiniteValue) {
  EXPECT_ERROR(
      JsonGrammar::from_schema(R"({"properties":{"a":{"$ref":"#"}},"required":["a"]})"),
      StatusCode::kInvalidArgument, "no value of bounded depth");
  EXPECT_ERROR(
      JsonGrammar::from_schema(R"({"$ref":"#"})"), StatusCode::kInvalidArgument,
      "no value of bounded depth");
  EXPECT_ERROR(
      JsonGrammar::from_schema(R"({"minItems":1,"items":{"$ref":"#"}})"),
      StatusCode::kInvalidArgument, "no value of bounded depth");
}

TEST(JsonGrammarTest, RefusesOversizedSchemas) {
  std::string deep;
  for (int i = 0; i < 200000; ++i) deep += R"({"items":)";
  EXPECT_ERROR(JsonGrammar::from_schema(deep), StatusCode::kInvalidArgument, "bytes, must be");
  EXPECT_ERROR(
      JsonGrammar::from_schema(deep.substr(0, 9 * 1000)), StatusCode::kInvalidArgument,
      "nested more than 64");
  std::string wide = R"({"anyOf":[)";
  for (int i = 0; i < 300; ++i) wide += str_cat(i == 0 ? "" : ",", R"({"enum":[)", i, "]}");
  EXPECT_ERROR(
      JsonGrammar::from_schema(wide + "]}"), StatusCode::kInvalidArgument,
      "more than 256 alternatives");
  std::string chain = R"({"$ref":"#/$defs/0","$defs":{)";
  for (int i = 0; i < 3000; ++i) chain += str_cat('"', i, R"(":{"$ref":"#/$defs/)", i + 1, "\"},");
  EXPECT_OK(JsonGrammar::from_schema(chain + R"("3000":{}}})"));
  for (int i = 3000; i < 5000; ++i)
    chain += str_cat('"', i, R"(":{"$ref":"#/$defs/)", i + 1, "\"},");
  EXPECT_ERROR(
      JsonGrammar::from_schema(chain + R"("5000":{}}})"), StatusCode::kInvalidArgument,
      "more than 4096 subschemas");
}

}  // namespace
}  // namespace tandem
