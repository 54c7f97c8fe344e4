#include "api/responses/responses_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/responses/sealed_reasoning.h"

namespace tandem {
namespace {

using api::Json;
using api::ResponsesRequest;
using api::ToolForm;
using ::testing::HasSubstr;

ResponsesRequest ok(const std::string& body) {
  auto request = api::read_responses_request(Json::parse(body));
  EXPECT_TRUE(request.ok()) << (request.ok() ? "" : request.error().message);
  return request.ok() ? std::move(*request) : ResponsesRequest{};
}

std::string with(const std::string& field) {
  return R"({"model":"m","input":"hi",)" + field + "}";
}

std::string input(const std::string& items) {
  return R"({"input":[)" + items + "]}";
}

void expect_refused(
    const std::string& body, const std::string& param, const std::string& phrase = "") {
  auto request = api::read_responses_request(Json::parse(body));
  ASSERT_FALSE(request.ok()) << body;
  EXPECT_EQ(request.error().http_status, 400);
  EXPECT_EQ(request.error().param, param);
  EXPECT_THAT(request.error().message, HasSubstr(phrase));
}

TEST(ResponsesReaderTest, ReadsAPlainRequest) {
  const ResponsesRequest request = ok(with(
      R"("instructions":"Be brief.","max_output_tokens":5,"temperature":0,"top_p":0.5,
         "stream":true,"store":true,"include":["reasoning.encrypted_content"],
         "prompt_cache_key":"k","client_metadata":{"a":"b"},"service_tier":"auto",
         "previous_response_id":null,"conversation":null,"metadata":{"a":"b"},
         "reasoning":{"effort":"high","summary":"auto"},"parallel_tool_calls":false)"));
  ASSERT_EQ(request.chat.messages.size(), 2u);
  EXPECT_EQ(request.chat.messages[0].role, Role::kSystem);
  EXPECT_EQ(request.chat.messages[0].content, "Be brief.");
  EXPECT_EQ(request.chat.messages[1].content, "hi");
  EXPECT_EQ(request.chat.max_tokens, 5);
  EXPECT_EQ(request.chat.effort, api::Effort::kHigh);
  EXPECT_EQ(request.chat.prompt_param, "input");
  EXPECT_FALSE(request.chat.parallel_tool_calls);
  EXPECT_TRUE(request.chat.stream);
  EXPECT_TRUE(request.shows_reasoning);
  EXPECT_TRUE(request.seals_reasoning);
  EXPECT_EQ(request.echo["metadata"]["a"], "b");
  EXPECT_EQ(request.echo["reasoning"]["effort"], "high");
}

TEST(ResponsesReaderTest, HidesReasoningUnlessAsked) {
  EXPECT_FALSE(ok(with(R"("reasoning":{"effort":"low"})")).shows_reasoning);
  EXPECT_FALSE(ok(with(R"("reasoning":null)")).shows_reasoning);
}

TEST(ResponsesReaderTest, JoinsItemsIntoTurns) {
  const ResponsesRequest request = ok(input(
      R"({"role":"developer","content":"rule"},
         {"type":"message","role":"user","content":[{"type":"input_text","text":"a"},
                                                     {"type":"input_text","text":"b"}]},
         {"type":"reasoning","summary":[{"type":"summary_text","text":"h"}],
          "content":[{"type":"reasoning_text","text":"m"}]},
         {"type":"message","role":"assistant","status":"completed",
          "content":[{"type":"output_text","text":"c","annotations":[]}]},
         {"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1}"},
         {"type":"function_call","call_id":"c2","name":"g","namespace":"ns__","arguments":{"y":2}},
         {"type":"function_call_output","call_id":"c1","output":"r1"},
         {"type":"function_call_output","call_id":"c2",
          "output":[{"type":"input_text","text":"r"},{"type":"input_text","text":"2"}]})"));
  const auto& messages = request.chat.messages;
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0].role, Role::kSystem);
  EXPECT_EQ(messages[1].content, "ab");
  EXPECT_EQ(messages[2].role, Role::kAssistant);
  EXPECT_EQ(messages[2].reasoning, "hm");
  EXPECT_EQ(messages[2].content, "c");
  ASSERT_EQ(messages[2].tool_calls.size(), 2u);
  EXPECT_EQ(messages[2].tool_calls[0].arguments, R"({"x":1})");
  EXPECT_EQ(messages[2].tool_calls[1].name, "ns__g");
  EXPECT_EQ(messages[2].tool_calls[1].arguments, R"({"y":2})");
  EXPECT_EQ(messages[3].role, Role::kTool);
  EXPECT_EQ(messages[3].tool_call_id, "c1");
  EXPECT_EQ(messages[4].content, "r2");
}

TEST(ResponsesReaderTest, ReasoningWithoutATurnIsATurnOfItsOwn) {
  const ResponsesRequest request = ok(input(
      R"({"type":"reasoning","summary":[{"type":"summary_text","text":"h"}]},
         {"role":"user","content":"a"},
         {"type":"reasoning","summary":[{"type":"summary_text","text":"k"}]},
         {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
         {"type":"function_call_output","call_id":"c","output":""})"));
  const auto& messages = request.chat.messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0].role, Role::kAssistant);
  EXPECT_EQ(messages[0].reasoning, "h");
  EXPECT_EQ(messages[2].reasoning, "k");
  EXPECT_EQ(messages[2].tool_calls.size(), 1u);
}

TEST(ResponsesReaderTest, TakesSealedReasoningBeforeItsSummary) {
  const std::string sealed = api::seal_reasoning("exact");
  EXPECT_EQ(
      ok(input(
             R"({"type":"reasoning","summary":[{"type":"summary_text","text":"short"}],
                 "encrypted_content":")" +
             sealed + R"("},{"role":"assistant","content":"a"},{"role":"user","content":"b"})"))
          .chat.messages[0]
          .reasoning,
      "exact");
  // Another server's seal says nothing here.
  EXPECT_EQ(
      ok(input(R"({"type":"reasoning","summary":[{"type":"summary_text","text":"short"}],
                   "encrypted_content":"gAAAA"},{"role":"assistant","content":"a"},
                  {"role":"user","content":"b"})"))
          .chat.messages[0]
          .reasoning,
      "short");
}

TEST(ResponsesReaderTest, ReadsCustomAndShellCalls) {
  const ResponsesRequest request = ok(input(
      R"({"role":"user","content":"a"},
         {"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** \"x\"\n"},
         {"type":"local_shell_call","call_id":"c2","status":"completed",
          "action":{"type":"exec","command":["ls","-l"],"env":{}}},
         {"type":"tool_search_call","call_id":"c3","execution":"client","arguments":{"query":"q"}},
         {"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":"q"}},
         {"type":"custom_tool_call_output","call_id":"c1","output":"done"},
         {"type":"local_shell_call_output","call_id":"c2","output":"total 0"},
         {"type":"compaction","encrypted_content":"x"})"));
  const auto& messages = request.chat.messages;
  ASSERT_EQ(messages.size(), 4u);
  const auto& calls = messages[1].tool_calls;
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[0].arguments, R"({"input":"*** \"x\"\n"})");
  EXPECT_EQ(calls[1].name, "local_shell");
  EXPECT_EQ(calls[1].arguments, R"({"command":["ls","-l"]})");
  EXPECT_EQ(calls[2].name, "tool_search");
  EXPECT_EQ(calls[3].name, "web_search");
  EXPECT_EQ(messages[3].content, "total 0");
}

TEST(ResponsesReaderTest, ShowsEveryFormOfToolAsAFunction) {
  const ResponsesRequest request = ok(with(
      R"("tools":[
        {"type":"function","name":"f","description":"d","strict":true,"parameters":{"type":"object"}},
        {"type":"function","function":{"name":"n"}},
        {"name":"bare"},
        {"type":"custom","name":"apply_patch","description":"Patches.",
         "format":{"type":"grammar","syntax":"lark","definition":"start: \"x\""}},
        {"type":"namespace","name":"mcp__a__","tools":[{"type":"function","name":"t"}]},
        {"type":"local_shell"},
        {"type":"web_search","external_web_access":true},
        {"type":"image_generation"}],
        "tool_choice":{"type":"custom","name":"apply_patch"})"));
  const auto& tools = request.chat.tools;
  ASSERT_EQ(tools.size(), 6u);
  EXPECT_EQ(tools[0].json, R"({"name":"f","description":"d","parameters":{"type":"object"}})");
  EXPECT_EQ(tools[1].name, "n");
  EXPECT_EQ(tools[2].name, "bare");
  EXPECT_THAT(tools[3].json, HasSubstr(R"(start: \"x\")"));
  EXPECT_THAT(tools[3].json, HasSubstr(R"("required":["input"])"));
  EXPECT_EQ(tools[4].name, "mcp__a__t");
  EXPECT_EQ(tools[5].name, "local_shell");
  EXPECT_EQ(request.chat.tool_choice, api::ToolChoice::kNamed);
  EXPECT_EQ(request.chat.tool_name, "apply_patch");
  EXPECT_EQ(request.tools.find("apply_patch").form, ToolForm::kCustom);
  EXPECT_EQ(request.tools.find("mcp__a__t").name, "t");
  EXPECT_EQ(request.tools.find("mcp__a__t").space, "mcp__a__");
  EXPECT_EQ(request.tools.find("unknown").form, ToolForm::kFunction);
}

TEST(ResponsesReaderTest, LoadsDeferredToolsWhenASearchFoundThem) {
  const std::string tools =
      R"("tools":[{"type":"tool_search","description":"d"},
                  {"type":"function","name":"later","defer_loading":true}])";
  EXPECT_EQ(ok(with(tools)).chat.tools.size(), 1u);
  const ResponsesRequest request = ok(
      R"({"input":[{"role":"user","content":"a"},
          {"type":"tool_search_call","call_id":"c","arguments":{"query":"q"}},
          {"type":"tool_search_output","call_id":"c",
           "tools":[{"type":"function","name":"later","defer_loading":true}]}],)" +
      tools + "}");
  ASSERT_EQ(request.chat.tools.size(), 2u);
  EXPECT_EQ(request.chat.tools[1].name, "later");
  EXPECT_THAT(request.chat.messages.back().content, HasSubstr("later"));
  // A plain function of that name stays one.
  EXPECT_EQ(
      ok(with(R"("tools":[{"type":"function","name":"tool_search"}])"))
          .tools.find("tool_search")
          .form,
      ToolForm::kFunction);
}

TEST(ResponsesReaderTest, AnEmptyTurnFollowsAnInputThatEndsWithTheAssistant) {
  const ResponsesRequest request =
      ok(input(R"({"role":"user","content":"a"},{"role":"assistant","content":"b"})"));
  ASSERT_EQ(request.chat.messages.size(), 3u);
  EXPECT_EQ(request.chat.messages[2].role, Role::kUser);
}

TEST(ResponsesReaderTest, ReadsTextFormatAndLogprobs) {
  const ResponsesRequest request = ok(with(
      R"("text":{"format":{"type":"json_schema","name":"n","strict":true,
                           "schema":{"type":"object"}},"verbosity":"low"},
         "include":["message.output_text.logprobs"],"top_logprobs":3)"));
  EXPECT_EQ(request.chat.format, api::OutputFormat::kJsonSchema);
  EXPECT_EQ(request.chat.schema_json, R"({"type":"object"})");
  EXPECT_TRUE(request.chat.sampling.logprobs);
  EXPECT_EQ(request.chat.sampling.num_logprobs, 3);
}

TEST(ResponsesReaderTest, RefusesWhatNeedsStoredState) {
  expect_refused(with(R"("previous_response_id":"resp_1")"), "previous_response_id", "whole input");
  expect_refused(with(R"("conversation":"conv_1")"), "conversation");
  expect_refused(with(R"("background":true)"), "background");
  expect_refused(input(R"({"type":"item_reference","id":"x"})"), "input[0].type", "item_reference");
}

TEST(ResponsesReaderTest, RefusesWrongTypesByName) {
  expect_refused(R"([])", "");
  expect_refused(R"({})", "input", "missing input");
  expect_refused(R"({"input":[]})", "input");
  expect_refused(R"({"input":7})", "input");
  expect_refused(input("7"), "input[0]");
  expect_refused(input(R"({"content":"a"})"), "input[0].type");
  expect_refused(input(R"({"role":"robot","content":"a"})"), "input[0].role");
  expect_refused(input(R"({"role":"user"})"), "input[0].content");
  expect_refused(
      input(R"({"role":"user","content":[{"type":"input_image","image_url":"x"}]})"),
      "input[0].content[0]", "input_image");
  expect_refused(
      input(R"({"role":"user","content":[{"type":"input_text"}]})"), "input[0].content[0].text");
  expect_refused(
      input(R"({"type":"message","status":"incomplete","role":"assistant","content":"a"})"),
      "input[0].status");
  expect_refused(input(R"({"type":"function_call","name":"f"})"), "input[0].call_id");
  expect_refused(
      input(R"({"type":"function_call","call_id":"c","name":"f","arguments":7})"),
      "input[0].arguments");
  expect_refused(with(R"("instructions":7)"), "instructions");
  expect_refused(with(R"("tools":{})"), "tools");
  expect_refused(with(R"("tools":[{"type":"file_search"}])"), "tools[0].type", "file_search");
  expect_refused(with(R"("tools":[{"name":"f"},{"name":"f"}])"), "tools[1]", "twice");
  expect_refused(with(R"("tool_choice":"maybe")"), "tool_choice");
  expect_refused(with(R"("tool_choice":{"type":"function","name":"f"})"), "tool_choice");
  expect_refused(with(R"("reasoning":{"effort":"huge"})"), "reasoning.effort");
  expect_refused(with(R"("reasoning":{"summary":"long"})"), "reasoning.summary");
  expect_refused(with(R"("include":"x")"), "include");
  expect_refused(with(R"("text":{"format":{"type":"xml"}})"), "text.format.type");
  expect_refused(with(R"("max_output_tokens":-1)"), "max_output_tokens");
}

}  // namespace
}  // namespace tandem
