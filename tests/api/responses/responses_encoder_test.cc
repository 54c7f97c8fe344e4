#include "api/responses/responses_encoder.h"

#include <gtest/gtest.h>

#include "api/responses/responses_reader.h"
#include "tests/api/support/answers.h"
#include "tests/api/support/openapi.h"
#include "tests/api/support/sse.h"

namespace tandem {
namespace {

using api::Json;
using test::ScriptedAnswer;

const test::OpenApi& description() {
  static const test::OpenApi kDescription;
  return kDescription;
}

api::ResponsesRequest request_of(const std::string& fields) {
  auto request = api::read_responses_request(Json::parse(R"({"input":"hi")" + fields + "}"));
  EXPECT_TRUE(request.ok());
  return std::move(*request);
}

api::ResponseHead head() {
  return {"resp_0123456789abcdef01234567", 1767225600, "nano"};
}

ScriptedAnswer play(std::vector<std::string> pieces, FinishReason finish = FinishReason::kStop) {
  test::Script script;
  script.pieces = std::move(pieces);
  script.finish = finish;
  ScriptedAnswer out = test::play(script);
  out.completion.head = head();
  return out;
}

std::vector<test::SseEvent> stream(
    const api::ResponsesRequest& request, const ScriptedAnswer& answer,
    const api::ResponsesWriterOptions& options = {}) {
  const auto encoder = api::responses_encoder(request, options, head());
  auto events = test::parse_sse(test::encode(*encoder, answer));
  for (const auto& [name, data] : events) {
    EXPECT_EQ(test::joined(description().check_event("/v1/responses", data)), "") << name;
  }
  return events;
}

/// The response with the random ids of its items taken out.
Json without_ids(Json response) {
  for (Json& item : response["output"]) {
    item.erase("id");
    item.erase("call_id");
  }
  return response;
}

std::string outline(const std::vector<test::SseEvent>& events) {
  std::string out;
  for (const auto& [name, data] : events) {
    out += name.substr(std::string_view("response.").size());
    for (const char* key : {"output_index", "delta", "text", "arguments", "input"}) {
      if (data.contains(key)) out += str_cat(" ", data[key].dump());
    }
    if (data.contains("item")) out += str_cat(" ", data["item"]["type"].dump());
    out += "\n";
  }
  return out;
}

TEST(ResponsesEncoderTest, WritesTheWorkedExample) {
  const auto events = stream(request_of(""), play(test::example_pieces()));
  EXPECT_EQ(outline(events), R"(created
in_progress
output_item.added 0 "message"
content_part.added 0
output_text.delta 0 "Checking."
output_text.done 0 "Checking."
content_part.done 0
output_item.done 0 "message"
output_item.added 1 "function_call"
function_call_arguments.delta 1 "{"
function_call_arguments.delta 1 "\"tz\":\""
function_call_arguments.delta 1 "Europe/Rome"
function_call_arguments.delta 1 "\""
function_call_arguments.delta 1 ",\"n\":2"
function_call_arguments.delta 1 "}"
function_call_arguments.done 1 "{\"tz\":\"Europe/Rome\",\"n\":2}"
output_item.done 1 "function_call"
completed
)");
  EXPECT_EQ(events[8].data["item"]["arguments"], "");
  const Json& usage = events.back().data["response"]["usage"];
  EXPECT_EQ(usage["input_tokens"], 100);
  EXPECT_EQ(usage["input_tokens_details"]["cached_tokens"], 60);
}

TEST(ResponsesEncoderTest, ShowsReasoningWhenASummaryIsAskedFor) {
  const auto request = request_of(R"(,"reasoning":{"summary":"auto"})");
  const auto events = stream(request, play({"hm", "m</think>", "a"}));
  EXPECT_EQ(outline(events), R"(created
in_progress
output_item.added 0 "reasoning"
reasoning_summary_part.added 0
reasoning_summary_text.delta 0 "hm"
reasoning_summary_text.delta 0 "m"
reasoning_summary_text.done 0 "hmm"
reasoning_summary_part.done 0
output_item.done 0 "reasoning"
output_item.added 1 "message"
content_part.added 1
output_text.delta 1 "a"
output_text.done 1 "a"
content_part.done 1
output_item.done 1 "message"
completed
)");
}

TEST(ResponsesEncoderTest, AnySplitGivesTheWholeAnswer) {
  for (const char* fields :
       {"", R"(,"reasoning":{"summary":"auto"})",
        R"(,"include":["reasoning.encrypted_content"])"}) {
    const auto request = request_of(fields);
    const Json expected = without_ids(
        api::responses_response(request, {}, play({test::example_answer()}).completion));
    for (size_t size = 1; size <= 40; ++size) {
      SCOPED_TRACE(::testing::Message() << fields << " size=" << size);
      const ScriptedAnswer answer = play(test::pieces_of(test::example_answer(), size));
      const Json folded = test::fold_responses(stream(request, answer));
      EXPECT_EQ(without_ids(folded)["output"], expected["output"]);
      EXPECT_EQ(folded["status"], "completed");
    }
  }
}

TEST(ResponsesEncoderTest, BodiesFitTheDescription) {
  const auto request = request_of(R"(,"reasoning":{"summary":"auto"})");
  const Json body = api::responses_response(request, {}, play({test::example_answer()}).completion);
  EXPECT_EQ(test::joined(description().check_body("/v1/responses", "post", 200, body)), "");
}

std::string call_of(const std::string& name, const std::string& parameters) {
  return "</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"" + name + "\">\n" + parameters +
         "</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
}

TEST(ResponsesEncoderTest, StreamsTheTextOfACustomCall) {
  const auto request = request_of(R"(,"tools":[{"type":"custom","name":"apply_patch"}])");
  const std::string text = call_of(
      "apply_patch",
      "<｜DSML｜parameter name=\"input\" string=\"true\">*** \"q\"\n\\é😀</｜DSML｜parameter>\n");
  for (size_t size = 1; size <= 30; ++size) {
    SCOPED_TRACE(::testing::Message() << "size=" << size);
    const auto events = stream(request, play(test::pieces_of(text, size)));
    const Json folded = test::fold_responses(events);
    ASSERT_EQ(folded["output"].size(), 1u);
    EXPECT_EQ(folded["output"][0]["type"], "custom_tool_call");
    EXPECT_EQ(folded["output"][0]["input"], "*** \"q\"\n\\é😀");
    EXPECT_FALSE(folded["output"][0].contains("arguments"));
  }
}

TEST(ResponsesEncoderTest, WritesOtherFormsOfCallsWhole) {
  const auto request = request_of(
      R"(,"tools":[{"type":"tool_search"},{"type":"local_shell"},
                   {"type":"namespace","name":"mcp__a__","tools":[{"name":"t"}]}])");
  Json folded = test::fold_responses(stream(
      request, play({call_of(
                   "tool_search",
                   "<｜DSML｜parameter name=\"query\" string=\"true\">q</｜DSML｜parameter>\n")})));
  EXPECT_EQ(folded["output"][0]["type"], "tool_search_call");
  EXPECT_EQ(folded["output"][0]["execution"], "client");
  EXPECT_EQ(folded["output"][0]["arguments"], Json({{"query", "q"}}));
  folded = test::fold_responses(stream(
      request, play({call_of(
                   "local_shell",
                   "<｜DSML｜parameter name=\"command\" "
                   "string=\"false\">[\"ls\"]</｜DSML｜parameter>\n")})));
  EXPECT_EQ(folded["output"][0]["type"], "local_shell_call");
  EXPECT_EQ(folded["output"][0]["action"]["command"], Json::array({"ls"}));
  folded = test::fold_responses(stream(request, play({call_of("mcp__a__t", "")})));
  EXPECT_EQ(folded["output"][0]["name"], "t");
  EXPECT_EQ(folded["output"][0]["namespace"], "mcp__a__");
}

TEST(ResponsesEncoderTest, B014ACallInsideOpenReasoningIsACall) {
  const auto request = request_of(R"(,"reasoning":{"summary":"auto"})");
  const std::string text = test::forgotten_end_answer();
  for (size_t size : {size_t{1}, size_t{7}, text.size()}) {
    SCOPED_TRACE(::testing::Message() << "size=" << size);
    const ScriptedAnswer answer = play(test::pieces_of(text, size));
    for (const Json& response :
         {test::fold_responses(stream(request, answer)),
          api::responses_response(request, {}, answer.completion)}) {
      ASSERT_EQ(response["output"].size(), 2u) << response;
      EXPECT_EQ(response["output"][0]["summary"][0]["text"], "hm");
      EXPECT_EQ(response["output"][1]["name"], "get_time");
    }
  }
}

TEST(ResponsesEncoderTest, B019ParallelCallsAreNeverMixed) {
  const auto request = request_of("");
  const std::string text = test::parallel_answer();
  for (size_t size = 1; size <= 20; ++size) {
    SCOPED_TRACE(::testing::Message() << "size=" << size);
    const ScriptedAnswer answer = play(test::pieces_of(text, size));
    for (const Json& response :
         {test::fold_responses(stream(request, answer)),
          api::responses_response(request, {}, answer.completion)}) {
      const Json& output = response["output"];
      ASSERT_EQ(output.size(), 2u);
      EXPECT_EQ(output[0]["name"], "read_file");
      EXPECT_EQ(output[0]["arguments"], R"({"path":"same text"})");
      EXPECT_EQ(output[1]["name"], "bash");
      EXPECT_EQ(output[1]["arguments"], R"({"command":"same text"})");
      EXPECT_NE(output[0]["call_id"], output[1]["call_id"]);
    }
  }
}

TEST(ResponsesEncoderTest, ACutCallIsNeverDeclaredDone) {
  const std::string text = test::example_answer();
  const ScriptedAnswer answer =
      play({text.substr(0, text.find("Europe") + 3)}, FinishReason::kLength);
  const auto events = stream(request_of(""), answer);
  for (const auto& [name, data] : events) {
    if (name == "response.output_item.done") {
      EXPECT_EQ(data["item"]["type"], "message");
    }
  }
  EXPECT_EQ(events.back().name, "response.incomplete");
  const Json& response = events.back().data["response"];
  EXPECT_EQ(response["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(response["output"].size(), 1u);
}

TEST(ResponsesEncoderTest, UnfinishedReasoningIsIncomplete) {
  const auto request = request_of(R"(,"reasoning":{"summary":"auto"})");
  const ScriptedAnswer answer = play({"still"}, FinishReason::kLength);
  const Json folded = test::fold_responses(stream(request, answer));
  EXPECT_EQ(folded["status"], "incomplete");
  ASSERT_EQ(folded["output"].size(), 1u);
  EXPECT_EQ(folded["output"][0]["status"], "incomplete");
  EXPECT_EQ(
      without_ids(folded)["output"],
      without_ids(api::responses_response(request, {}, answer.completion))["output"]);
}

TEST(ResponsesEncoderTest, CallsACutAnswerCompletedWhereClientsNeedThat) {
  const ScriptedAnswer answer = play({"</think>some"}, FinishReason::kLength);
  const auto events = stream(request_of(""), answer, {.incomplete_as_completed = true});
  EXPECT_EQ(events.back().name, "response.completed");
  EXPECT_EQ(events.back().data["response"]["status"], "completed");
}

TEST(ResponsesEncoderTest, BeatsWithAnEventThatClientsCount) {
  const auto request = request_of("");
  const auto encoder = api::responses_encoder(request, {}, head());
  std::string out;
  encoder->begin(out);
  encoder->heartbeat(out);
  const auto events = test::parse_sse(out);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].name, "response.in_progress");
  EXPECT_EQ(events[2].data["sequence_number"], 2);
}

TEST(ResponsesEncoderTest, AFailureNamesACodeThatClientsKnow) {
  const auto request = request_of("");
  const auto failed = [&](api::ApiError error) {
    const auto encoder = api::responses_encoder(request, {}, head());
    std::string out;
    encoder->begin(out);
    encoder->error(error, out);
    const auto events = test::parse_sse(out);
    EXPECT_EQ(events.back().name, "response.failed");
    EXPECT_EQ(test::joined(description().check_event("/v1/responses", events.back().data)), "");
    return events.back().data["response"]["error"];
  };
  EXPECT_EQ(failed(api::prompt_too_long(10, 5, "input"))["code"], "context_length_exceeded");
  const Json shed = failed(api::api_error(Status(StatusCode::kResourceExhausted, "queue is full")));
  EXPECT_EQ(shed["code"], "rate_limit_exceeded");
  EXPECT_EQ(shed["message"], "queue is full; try again in 5s");
  EXPECT_EQ(
      failed(api::api_error(Status(StatusCode::kInternal, "broken")))["code"], "server_error");
}

}  // namespace
}  // namespace tandem
