#include "api/messages/messages_writer.h"

#include <gtest/gtest.h>

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

std::vector<test::SseEvent> stream(const ScriptedAnswer& answer) {
  const auto encoder = api::messages_encoder({"msg_0123456789abcdef01234567", 1767225600, "nano"});
  return test::parse_sse(test::encode(*encoder, answer));
}

ScriptedAnswer play(std::vector<std::string> pieces, FinishReason finish = FinishReason::kStop) {
  test::Script script;
  script.pieces = std::move(pieces);
  script.finish = finish;
  script.tool_id_prefix = "toolu_";
  return test::play(script);
}

/// One line an event: its name and what a reader looks at.
std::string outline(const std::vector<test::SseEvent>& events) {
  std::string out;
  for (const auto& [name, data] : events) {
    out += name;
    for (const char* key : {"index", "content_block", "delta"}) {
      if (!data.contains(key)) continue;
      Json shown = data[key];
      if (shown.is_object() && shown.contains("id")) shown["id"] = "ID";
      if (shown.is_object() && shown.contains("signature") && !shown["signature"].empty()) {
        shown["signature"] = shown["signature"] == "" ? "" : "SIGNATURE";
      }
      out += " " + shown.dump();
    }
    out += "\n";
  }
  return out;
}

TEST(MessagesWriterTest, WritesTheWorkedExample) {
  const auto events = stream(play(test::example_pieces()));
  EXPECT_EQ(
      outline(events),
      R"(message_start
content_block_start 0 {"type":"thinking","thinking":"","signature":""}
content_block_delta 0 {"type":"thinking_delta","thinking":"need the clock"}
content_block_delta 0 {"type":"signature_delta","signature":"SIGNATURE"}
content_block_stop 0
content_block_start 1 {"type":"text","text":""}
content_block_delta 1 {"type":"text_delta","text":"Checking."}
content_block_stop 1
content_block_start 2 {"type":"tool_use","id":"ID","name":"get_time","input":{}}
content_block_delta 2 {"type":"input_json_delta","partial_json":"{"}
content_block_delta 2 {"type":"input_json_delta","partial_json":"\"tz\":\""}
content_block_delta 2 {"type":"input_json_delta","partial_json":"Europe/Rome"}
content_block_delta 2 {"type":"input_json_delta","partial_json":"\""}
content_block_delta 2 {"type":"input_json_delta","partial_json":",\"n\":2"}
content_block_delta 2 {"type":"input_json_delta","partial_json":"}"}
content_block_stop 2
message_delta {"stop_reason":"tool_use","stop_sequence":null}
message_stop
)");
  const Json& start = events[0].data["message"];
  EXPECT_EQ(start["role"], "assistant");
  EXPECT_EQ(start["model"], "nano");
  EXPECT_EQ(start["content"], Json::array());
  EXPECT_EQ(start["usage"]["input_tokens"], 40);
  EXPECT_EQ(start["usage"]["cache_read_input_tokens"], 60);
  EXPECT_EQ(start["usage"]["output_tokens"], 0);
}

TEST(MessagesWriterTest, EventsAndBodiesFitTheDescription) {
  const ScriptedAnswer answer = play(test::pieces_of(test::example_answer(), 7));
  for (const auto& [name, data] : stream(answer)) {
    EXPECT_EQ(test::joined(description().check_event("/v1/messages", data)), "") << name;
  }
  api::Completion completion = answer.completion;
  completion.head.id = "msg_0123456789abcdef01234567";
  EXPECT_EQ(
      test::joined(description().check_body(
          "/v1/messages", "post", 200, api::messages_response(completion))),
      "");
}

TEST(MessagesWriterTest, AnySplitGivesTheWholeAnswer) {
  Json expected = api::messages_response(play({test::example_answer()}).completion);
  for (size_t size = 1; size <= 40; ++size) {
    SCOPED_TRACE(::testing::Message() << "size=" << size);
    const ScriptedAnswer answer = play(test::pieces_of(test::example_answer(), size));
    const Json folded = test::fold_messages(stream(answer));
    const Json whole = api::messages_response(answer.completion);
    for (Json block : {folded["content"][2], whole["content"][2]}) {
      block["id"] = expected["content"][2]["id"];
      EXPECT_EQ(block, expected["content"][2]);
    }
    EXPECT_EQ(folded["content"][2], whole["content"][2]);
    EXPECT_EQ(folded["content"][0]["thinking"], "need the clock");
    EXPECT_EQ(folded["content"][1], expected["content"][1]);
    EXPECT_EQ(folded["stop_reason"], "tool_use");
    EXPECT_EQ(folded["usage"], whole["usage"]);
  }
}

TEST(MessagesWriterTest, B014ACallInsideOpenReasoningIsACall) {
  const std::string text = test::forgotten_end_answer();
  for (size_t size : {size_t{1}, size_t{7}, text.size()}) {
    SCOPED_TRACE(::testing::Message() << "size=" << size);
    const ScriptedAnswer answer = play(test::pieces_of(text, size));
    for (const Json& message :
         {test::fold_messages(stream(answer)), api::messages_response(answer.completion)}) {
      ASSERT_EQ(message["content"].size(), 2u) << message;
      EXPECT_EQ(message["content"][0]["thinking"], "hm");
      EXPECT_EQ(message["content"][1]["name"], "get_time");
      EXPECT_EQ(message["stop_reason"], "tool_use");
    }
  }
}

TEST(MessagesWriterTest, B019ParallelCallsAreNeverMixed) {
  const std::string text = test::parallel_answer();
  for (size_t size = 1; size <= 20; ++size) {
    SCOPED_TRACE(::testing::Message() << "size=" << size);
    const ScriptedAnswer answer = play(test::pieces_of(text, size));
    for (const Json& message :
         {test::fold_messages(stream(answer)), api::messages_response(answer.completion)}) {
      const Json& content = message["content"];
      ASSERT_EQ(content.size(), 2u);
      EXPECT_EQ(content[0]["name"], "read_file");
      EXPECT_EQ(content[1]["name"], "bash");
      EXPECT_EQ(content[0]["input"], Json({{"path", "same text"}}));
      EXPECT_EQ(content[1]["input"], Json({{"command", "same text"}}));
      EXPECT_NE(content[0]["id"], content[1]["id"]);
    }
  }
}

TEST(MessagesWriterTest, ThinkingAloneIsFollowedByAnEmptyText) {
  const ScriptedAnswer answer = play({"still thinking"}, FinishReason::kLength);
  for (const Json& message :
       {test::fold_messages(stream(answer)), api::messages_response(answer.completion)}) {
    ASSERT_EQ(message["content"].size(), 2u);
    EXPECT_EQ(message["content"][0]["type"], "thinking");
    EXPECT_EQ(message["content"][1], Json({{"type", "text"}, {"text", ""}}));
    EXPECT_EQ(message["stop_reason"], "max_tokens");
  }
}

TEST(MessagesWriterTest, NamesTheStopString) {
  test::Script script;
  script.pieces = {"a</think>b"};
  script.stop_string = "END";
  const ScriptedAnswer answer = test::play(script);
  for (const Json& message :
       {test::fold_messages(stream(answer)), api::messages_response(answer.completion)}) {
    EXPECT_EQ(message["stop_reason"], "stop_sequence");
    EXPECT_EQ(message["stop_sequence"], "END");
  }
}

TEST(MessagesWriterTest, BeatsBeforeAndAfterTheStart) {
  const auto encoder = api::messages_encoder(test::example_head());
  const ScriptedAnswer answer = play({"a</think>b"});
  std::string out;
  encoder->begin(out);
  encoder->heartbeat(out);
  for (const api::Delta& delta : answer.deltas) {
    encoder->delta(delta, out);
    if (delta.kind != api::Delta::Kind::kFinish) encoder->heartbeat(out);
  }
  encoder->end(answer.completion, out);
  const auto events = test::parse_sse(out);
  EXPECT_EQ(events[0].name, "ping");
  EXPECT_EQ(events[0].data, Json({{"type", "ping"}}));
  EXPECT_EQ(test::fold_messages(events)["content"][1]["text"], "b");
}

TEST(MessagesWriterTest, AnErrorIsAnErrorEvent) {
  const auto encoder = api::messages_encoder(test::example_head());
  api::ApiError error;
  error.http_status = 500;
  error.message = "the engine failed";
  std::string out;
  encoder->error(error, out);
  const auto events = test::parse_sse(out);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].name, "error");
  EXPECT_EQ(events[0].data["error"]["type"], "api_error");
  EXPECT_EQ(test::joined(description().check_event("/v1/messages", events[0].data)), "");
}

}  // namespace
}  // namespace tandem
