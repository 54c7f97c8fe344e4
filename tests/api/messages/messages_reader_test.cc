#include "api/messages/messages_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using api::ApiResult;
using api::ChatRequest;
using api::Json;
using api::MessagesUse;
using ::testing::HasSubstr;

ApiResult<ChatRequest> read(const std::string& body, MessagesUse use = MessagesUse::kGenerate) {
  return api::read_messages_request(Json::parse(body), use);
}

ChatRequest ok(const std::string& body) {
  auto request = read(body);
  EXPECT_TRUE(request.ok()) << (request.ok() ? "" : request.error().message);
  return request.ok() ? *request : ChatRequest{};
}

/// The body with `field` beside a plain message.
std::string with(const std::string& field) {
  return R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],)" + field +
         "}";
}

std::string messages(const std::string& list) {
  return R"({"messages":[)" + list + "]}";
}

void expect_refused(
    const std::string& body, const std::string& param, const std::string& phrase = "") {
  auto request = read(body);
  ASSERT_FALSE(request.ok()) << body;
  EXPECT_EQ(request.error().http_status, 400);
  EXPECT_EQ(request.error().param, param);
  EXPECT_THAT(request.error().message, HasSubstr(phrase));
}

TEST(MessagesReaderTest, ReadsAPlainRequest) {
  const ChatRequest request = ok(with(
      R"("temperature":0.5,"top_p":0.9,"top_k":7,"stop_sequences":["a","","b"],"stream":true,
         "metadata":{"user_id":"u"},"service_tier":"auto","container":"c","mcp_servers":[],
         "context_management":{"edits":[]})"));
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.max_tokens, 9);
  ASSERT_EQ(request.messages.size(), 1u);
  EXPECT_EQ(request.messages[0].role, Role::kUser);
  EXPECT_EQ(request.messages[0].content, "hi");
  EXPECT_FLOAT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_FLOAT_EQ(request.sampling.top_p, 0.9f);
  EXPECT_EQ(request.sampling.top_k, 7);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(request.stream);
  EXPECT_FALSE(request.effort.has_value());
}

TEST(MessagesReaderTest, ReadsContentBeforeRole) {
  const ChatRequest request = ok(messages(R"({"content":"hi","role":"user"})"));
  EXPECT_EQ(request.messages[0].content, "hi");
}

TEST(MessagesReaderTest, B022DropsClientNotesFromSystemText) {
  const ChatRequest request = ok(with(R"("system":[
      {"type":"text","text":"x-anthropic-billing-header: cc_version=1; cch=a94b1;"},
      {"type":"text","text":"One.","cache_control":{"type":"ephemeral"}},
      {"type":"text","text":"Two."}])"));
  ASSERT_EQ(request.messages.size(), 2u);
  EXPECT_EQ(request.messages[0].role, Role::kSystem);
  EXPECT_EQ(request.messages[0].content, "One.\nTwo.");
  EXPECT_EQ(
      ok(with(R"("system":"x-anthropic-billing-header: cch=1;\nBe brief.")")).messages[0].content,
      "Be brief.");
  // Text that only mentions the name stays.
  EXPECT_EQ(
      ok(with(R"("system":"Explain x-anthropic-billing-header.")")).messages[0].content,
      "Explain x-anthropic-billing-header.");
}

TEST(MessagesReaderTest, B020KeepsSystemMessagesAtTheirPlace) {
  const ChatRequest request = ok(messages(
      R"({"role":"user","content":"one"},{"role":"system","content":[{"type":"text","text":"rule"}]},
         {"role":"assistant","content":"two"},{"role":"user","content":"three"})"));
  ASSERT_EQ(request.messages.size(), 4u);
  EXPECT_EQ(request.messages[1].role, Role::kSystem);
  EXPECT_EQ(request.messages[1].content, "rule");
}

TEST(MessagesReaderTest, ReadsBlocksInOrder) {
  const ChatRequest request = ok(messages(
      R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
         {"role":"assistant","content":[
            {"type":"thinking","thinking":"hm","signature":"s"},
            {"type":"redacted_thinking","data":"xx"},
            {"type":"text","text":"c"},{"type":"text","text":"d"},
            {"type":"tool_use","id":"t1","name":"f","input":{"z":1,"a":[true]}},
            {"type":"tool_use","id":"t2","name":"g","input":{}}]},
         {"role":"user","content":[
            {"type":"tool_result","tool_use_id":"t2","content":"r2"},
            {"type":"tool_result","tool_use_id":"t1",
             "content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]},
            {"type":"text","text":"and?"}]})"));
  ASSERT_EQ(request.messages.size(), 6u);
  EXPECT_EQ(request.messages[0].content, "a");
  EXPECT_EQ(request.messages[1].content, "b");
  const Message& assistant = request.messages[2];
  EXPECT_EQ(assistant.reasoning, "hm");
  EXPECT_EQ(assistant.content, "cd");
  ASSERT_EQ(assistant.tool_calls.size(), 2u);
  EXPECT_EQ(assistant.tool_calls[0].id, "t1");
  EXPECT_EQ(assistant.tool_calls[0].name, "f");
  EXPECT_EQ(assistant.tool_calls[0].arguments, R"({"z":1,"a":[true]})");
  EXPECT_EQ(assistant.tool_calls[1].arguments, "{}");
  EXPECT_EQ(request.messages[3].role, Role::kTool);
  EXPECT_EQ(request.messages[3].tool_call_id, "t2");
  EXPECT_EQ(request.messages[4].content, "x\ny");
  EXPECT_EQ(request.messages[5].role, Role::kUser);
}

TEST(MessagesReaderTest, AnEmptyFailedResultSaysThatItFailed) {
  const ChatRequest request = ok(messages(
      R"({"role":"user","content":"a"},
         {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},
         {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true}]})"));
  EXPECT_EQ(request.messages[2].content, "error");
}

TEST(MessagesReaderTest, ReadsToolsAndChoices) {
  const std::string tools =
      R"("tools":[{"name":"f","description":"d","input_schema":{"type":"object"},
                   "cache_control":{"type":"ephemeral"}},
                  {"type":"custom","name":"g"}])";
  ChatRequest request = ok(with(tools));
  ASSERT_EQ(request.tools.size(), 2u);
  EXPECT_EQ(
      request.tools[0].json, R"({"name":"f","description":"d","parameters":{"type":"object"}})");
  EXPECT_EQ(request.tools[1].json, R"({"name":"g"})");
  EXPECT_EQ(request.tool_choice, api::ToolChoice::kAuto);
  request = ok(with(tools + R"(,"tool_choice":{"type":"any","disable_parallel_tool_use":true})"));
  EXPECT_EQ(request.tool_choice, api::ToolChoice::kRequired);
  EXPECT_FALSE(request.parallel_tool_calls);
  request = ok(with(tools + R"(,"tool_choice":{"type":"tool","name":"g"})"));
  EXPECT_EQ(request.tool_choice, api::ToolChoice::kNamed);
  EXPECT_EQ(request.tool_name, "g");
  request = ok(with(tools + R"(,"tool_choice":{"type":"none"})"));
  EXPECT_EQ(request.tool_choice, api::ToolChoice::kNone);
}

TEST(MessagesReaderTest, ReadsThinkingAndOutputConfig) {
  EXPECT_EQ(ok(with(R"("thinking":{"type":"disabled"})")).effort, api::Effort::kNone);
  EXPECT_EQ(
      ok(with(R"("thinking":{"type":"enabled","budget_tokens":1024})")).effort, api::Effort::kLow);
  EXPECT_EQ(
      ok(with(R"("thinking":{"type":"adaptive"},"output_config":{"effort":"max"})")).effort,
      api::Effort::kMax);
  EXPECT_EQ(
      ok(with(R"("thinking":{"type":"disabled"},"output_config":{"effort":"high"})")).effort,
      api::Effort::kNone);
  const ChatRequest request =
      ok(with(R"("output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}})"));
  EXPECT_EQ(request.format, api::OutputFormat::kJsonSchema);
  EXPECT_EQ(request.schema_json, R"({"type":"object"})");
}

TEST(MessagesReaderTest, RefusesWrongTypesByName) {
  expect_refused(R"([])", "");
  expect_refused(R"({})", "messages");
  expect_refused(R"({"messages":[]})", "messages");
  expect_refused(R"({"messages":{}})", "messages");
  expect_refused(messages(R"("hi")"), "messages[0]");
  expect_refused(messages(R"({"role":"robot","content":"a"})"), "messages[0].role", "robot");
  expect_refused(messages(R"({"role":"user"})"), "messages[0].content");
  expect_refused(messages(R"({"role":"user","content":7})"), "messages[0].content");
  expect_refused(
      messages(R"({"role":"user","content":[{"type":"text","text":1}]})"),
      "messages[0].content[0].text");
  expect_refused(with(R"("system":7)"), "system");
  expect_refused(with(R"("tools":{})"), "tools");
  expect_refused(with(R"("tools":[{"input_schema":{}}])"), "tools[0].name");
  expect_refused(with(R"("tools":[{"name":"f","input_schema":[]}])"), "tools[0].input_schema");
  expect_refused(with(R"("tool_choice":"auto")"), "tool_choice");
  expect_refused(with(R"("tool_choice":{"type":"maybe"})"), "tool_choice.type");
  expect_refused(with(R"("tool_choice":{"type":"any"})"), "tool_choice");
  expect_refused(with(R"("temperature":"hot")"), "temperature");
  expect_refused(with(R"("stream":1)"), "stream");
  expect_refused(with(R"("thinking":{"type":"sometimes"})"), "thinking.type");
  expect_refused(with(R"("output_config":{"effort":"huge"})"), "output_config.effort");
  expect_refused(R"({"messages":[{"role":"user","content":"a"}],"max_tokens":-1})", "max_tokens");
}

TEST(MessagesReaderTest, RefusesWhatItCannotReadByName) {
  expect_refused(
      messages(R"({"role":"user","content":[{"type":"text","text":"a"},
                  {"type":"image","source":{"type":"base64","data":""}}]})"),
      "messages[0].content[1]", "image");
  expect_refused(
      messages(R"({"role":"user","content":[{"type":"document"}]})"), "messages[0].content[0]",
      "document");
  expect_refused(
      with(R"("tools":[{"type":"web_search_20250305","name":"web_search"}])"), "tools[0].type",
      "web_search_20250305");
  expect_refused(
      with(R"("tools":[{"name":"f"}],"tool_choice":{"type":"tool","name":"g"})"), "tool_choice");
  expect_refused(
      messages(R"({"role":"user","content":"a"},{"role":"assistant","content":"b"})"),
      "messages[1]");
}

TEST(MessagesReaderTest, CountsConversationsThatCannotBeAnswered) {
  EXPECT_TRUE(read(
                  messages(R"({"role":"user","content":"a"},{"role":"assistant","content":"b"})"),
                  MessagesUse::kCountTokens)
                  .ok());
}

TEST(MessagesReaderTest, HoldsTheLimits) {
  std::string stops = R"("stop_sequences":[)";
  for (int i = 0; i < 17; ++i) stops += (i > 0 ? ",\"s\"" : "\"s\"");
  expect_refused(with(stops + "]"), "stop_sequences");
  expect_refused(
      with(R"("stop_sequences":[")" + std::string(257, 'x') + R"("])"), "stop_sequences");
  EXPECT_EQ(
      ok(with(R"("stop_sequences":[")" + std::string(256, 'x') + R"("])")).stop[0].size(), 256u);
}

}  // namespace
}  // namespace tandem
