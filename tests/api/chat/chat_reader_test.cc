#include "api/chat/chat_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace tandem::api {
namespace {

/// A request with `fields` beside one message.
ApiResult<ChatRequest> read(const std::string& fields) {
  const std::string body = R"({"messages":[{"role":"user","content":"hi"}])" +
                           (fields.empty() ? "" : "," + fields) + "}";
  const auto json = parse_json(body);
  EXPECT_TRUE(json.ok()) << json.status().message() << " " << body;
  return read_chat_request(*json);
}

ApiResult<ChatRequest> read_body(const std::string& body) {
  return read_chat_request(*parse_json(body));
}

/// The field that is blamed, or "" if there is no error.
std::string blamed(const std::string& fields) {
  auto result = read(fields);
  if (result.ok()) return "";
  EXPECT_EQ(result.error().http_status, 400);
  EXPECT_NE(result.error().message.find(result.error().param), std::string::npos);
  return result.error().param;
}

TEST(ChatReaderTest, DefaultsAreTheServersOwn) {
  auto request = read("");
  ASSERT_TRUE(request.ok());
  EXPECT_FLOAT_EQ(request->sampling.temperature, 1.0f);
  EXPECT_FLOAT_EQ(request->sampling.min_p, 0.05f);
  EXPECT_FALSE(request->max_tokens.has_value());
  EXPECT_FALSE(request->effort.has_value());
  EXPECT_FALSE(request->stream);
}

TEST(ChatReaderTest, NamesTheFieldOfTheWrongType) {
  EXPECT_EQ(blamed(R"("temperature":"hot")"), "temperature");
  EXPECT_EQ(blamed(R"("top_p":1.5)"), "top_p");
  EXPECT_EQ(blamed(R"("max_tokens":-1)"), "max_tokens");
  EXPECT_EQ(blamed(R"("max_tokens":1.5)"), "max_tokens");
  EXPECT_EQ(blamed(R"("stream":1)"), "stream");
  EXPECT_EQ(blamed(R"("stop":[1])"), "stop");
  EXPECT_EQ(blamed(R"("n":0)"), "n");
  EXPECT_EQ(blamed(R"("n":17)"), "n");
  EXPECT_EQ(blamed(R"("top_logprobs":3)"), "top_logprobs");
  EXPECT_EQ(blamed(R"("top_logprobs":21,"logprobs":true)"), "top_logprobs");
  EXPECT_EQ(blamed(R"("reasoning_effort":"extreme")"), "reasoning_effort");
  EXPECT_EQ(blamed(R"("thinking":{"type":"maybe"})"), "thinking.type");
  EXPECT_EQ(blamed(R"("logit_bias":{"x":1})"), "logit_bias");
  EXPECT_EQ(blamed(R"("tools":[{"type":"retrieval"}])"), "tools[0].type");
  EXPECT_EQ(blamed(R"("tools":[{"type":"function","function":{}}])"), "tools[0].function.name");
  EXPECT_EQ(blamed(R"("tool_choice":"required")"), "tool_choice");
  EXPECT_EQ(blamed(R"("response_format":{"type":"xml"})"), "response_format.type");
  EXPECT_EQ(blamed(R"("functions":[])"), "functions");
  EXPECT_EQ(blamed(R"("modalities":["audio"])"), "modalities");
}

TEST(ChatReaderTest, NullAndUnknownFieldsAreSkipped) {
  EXPECT_EQ(
      blamed(R"("temperature":null,"tools":null,"stop":null,"stream_options":null,"user":"u",)"
             R"("metadata":{"a":1},"store":true,"service_tier":"auto","somethingNew":[{}])"),
      "");
}

TEST(ChatReaderTest, IntegersMayBeWrittenAsWholeNumbers) {
  auto request = read(R"("max_tokens":12.0)");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->max_tokens, 12);
}

TEST(ChatReaderTest, MissingMessagesHaveTheirOwnText) {
  auto request = read_body("{}");
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.error().message, "missing messages");
}

TEST(ChatReaderTest, ReadsContentInAllItsForms) {
  auto request = read_body(R"({"messages":[
      {"role":"developer","content":"rules"},
      {"role":"user","content":["a",{"type":"text","text":"b"}]},
      {"role":"assistant","content":null,"reasoning_content":"why","tool_calls":[
        {"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
        {"id":"call_2","type":"function","function":{"name":"g","arguments":{"y":2}}}]},
      {"role":"tool","tool_call_id":"call_1","content":"one"}]})");
  ASSERT_TRUE(request.ok());
  const auto& messages = request->messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0].role, Role::kSystem);
  EXPECT_EQ(messages[1].content, "ab");
  EXPECT_EQ(messages[2].reasoning, "why");
  ASSERT_EQ(messages[2].tool_calls.size(), 2u);
  EXPECT_EQ(messages[2].tool_calls[0].arguments, R"({"x":1})");
  EXPECT_EQ(messages[2].tool_calls[1].arguments, R"({"y":2})");
  EXPECT_EQ(messages[3].role, Role::kTool);
  EXPECT_EQ(messages[3].tool_call_id, "call_1");
}

TEST(ChatReaderTest, B055RefusesImagesByName) {
  auto request = read_body(R"({"messages":[{"role":"user","content":[
      {"type":"image_url","image_url":{"url":"http://127.0.0.1:1/x"}}]}]})");
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.error().param, "messages[0].content[0]");
  EXPECT_NE(request.error().message.find("image_url"), std::string::npos);
}

TEST(ChatReaderTest, UnknownRolesAreRefused) {
  auto request = read_body(R"({"messages":[{"role":"oracle","content":"x"}]})");
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.error().param, "messages[0].role");
}

TEST(ChatReaderTest, EffortWordsMapToLevels) {
  const auto effort = [](const std::string& fields) { return read(fields)->effort; };
  EXPECT_EQ(effort(R"("reasoning_effort":"none")"), Effort::kNone);
  EXPECT_EQ(effort(R"("reasoning_effort":"minimal")"), Effort::kLow);
  EXPECT_EQ(effort(R"("reasoning_effort":"medium")"), Effort::kLow);
  EXPECT_EQ(effort(R"("reasoning_effort":"xhigh")"), Effort::kHigh);
  EXPECT_EQ(effort(R"("reasoning_effort":"max")"), Effort::kMax);
  EXPECT_EQ(effort(R"("thinking":{"type":"disabled"})"), Effort::kNone);
  EXPECT_EQ(effort(R"("thinking":{"type":"enabled","budget_tokens":9})"), Effort::kLow);
  EXPECT_EQ(effort(R"("thinking":true,"reasoning_effort":"high")"), Effort::kHigh);
  EXPECT_EQ(effort(R"("think":false)"), Effort::kNone);
  EXPECT_EQ(effort(R"("chat_template_kwargs":{"enable_thinking":false})"), Effort::kNone);
  EXPECT_EQ(effort(R"("model":"deepseek-chat")"), Effort::kNone);
}

TEST(ChatReaderTest, ToolsKeepTheOrderOfTheirProperties) {
  auto request =
      read(R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",)"
           R"("properties":{"z":{},"a":{}}}}},{"type":"function","name":"flat","parameters":{}}])");
  ASSERT_TRUE(request.ok());
  ASSERT_EQ(request->tools.size(), 2u);
  EXPECT_EQ(
      request->tools[0].json,
      R"({"name":"f","parameters":{"type":"object","properties":{"z":{},"a":{}}}})");
  EXPECT_EQ(request->tools[1].json, R"({"name":"flat","parameters":{}})");
}

TEST(ChatReaderTest, ToolChoiceNamesAKnownTool) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}],)";
  auto named = read(tools + R"("tool_choice":{"type":"function","function":{"name":"f"}})");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->tool_choice, ToolChoice::kNamed);
  EXPECT_EQ(named->tool_name, "f");
  EXPECT_EQ(
      blamed(tools + R"("tool_choice":{"type":"function","function":{"name":"g"}})"),
      "tool_choice");
  EXPECT_EQ(read(tools + R"("tool_choice":"none")")->tool_choice, ToolChoice::kNone);
}

}  // namespace
}  // namespace tandem::api
