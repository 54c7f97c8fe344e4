// What a model writes, as the clients of every surface see it, whole and streamed.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/api/server/script_texts.h"
#include "tests/api/support/sse.h"
#include "tests/support/http_client.h"
#include "tests/support/test_server.h"

namespace tandem::test {
namespace {

using api::Json;

/// One way to ask: a surface, whole or streamed.
struct Way {
  const char* path;
  bool streams;
};

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kMessages = "/v1/messages";
constexpr const char* kResponses = "/v1/responses";
constexpr const char* kCompletions = "/v1/completions";

const std::vector<Way> kToolWays = {{kChat, false},    {kChat, true},       {kMessages, false},
                                    {kMessages, true}, {kResponses, false}, {kResponses, true}};
const std::vector<Way> kAllWays = [] {
  std::vector<Way> ways = kToolWays;
  ways.push_back({kCompletions, false});
  ways.push_back({kCompletions, true});
  return ways;
}();

/// What a client makes of an answer, whatever the surface.
struct Seen {
  int status = 0;
  std::string reasoning;
  std::string content;
  std::vector<std::pair<std::string, Json>> calls;  // name and arguments
  std::string end;                                  // "stop", "tool_calls", "length", or an error
};

Json body_of(const Way& way, bool thinks) {
  const Json parameters = {{"type", "object"}};
  const std::string path = way.path;
  Json body = {{"stream", way.streams}, {"max_tokens", 200}};
  if (!thinks) body["thinking"] = {{"type", "disabled"}};
  if (path == kCompletions) {
    body["prompt"] = "hi";
    return body;
  }
  if (path == kResponses) {
    body["input"] = "hi";
    body["reasoning"] = {{"summary", "auto"}};
    body["tools"] =
        Json::array({{{"type", "function"}, {"name", "get_time"}, {"parameters", parameters}}});
    return body;
  }
  body["messages"] = Json::array({{{"role", "user"}, {"content", "hi"}}});
  if (path == kChat) {
    const Json function = {{"name", "get_time"}, {"parameters", parameters}};
    body["tools"] = Json::array({{{"type", "function"}, {"function", function}}});
  } else {
    body["tools"] = Json::array({{{"name", "get_time"}, {"input_schema", parameters}}});
  }
  return body;
}

Seen seen_message(const Json& message) {
  Seen out;
  for (const Json& block : message["content"]) {
    if (block["type"] == "thinking") out.reasoning += block["thinking"].get<std::string>();
    if (block["type"] == "text") out.content += block["text"].get<std::string>();
    if (block["type"] == "tool_use") out.calls.emplace_back(block["name"], block["input"]);
  }
  const std::string reason = message["stop_reason"];
  out.end = reason == "tool_use" ? "tool_calls" : reason == "max_tokens" ? "length" : "stop";
  return out;
}

Seen seen_response(const Json& response) {
  Seen out;
  for (const Json& item : response["output"]) {
    if (item["type"] == "reasoning") {
      for (const Json& part : item["summary"]) out.reasoning += part["text"].get<std::string>();
    }
    if (item["type"] == "message") out.content += item["content"][0]["text"].get<std::string>();
    if (item["type"] == "function_call") {
      out.calls.emplace_back(item["name"], Json::parse(item["arguments"].get<std::string>()));
    }
  }
  out.end = response["status"] == "incomplete" ? "length"
            : out.calls.empty()                ? "stop"
                                               : "tool_calls";
  return out;
}

/// Of Chat and Completions: a choice, or the deltas of one.
class ChoiceFold {
 public:
  void take(const Json& choice) {
    const Json& part = choice.contains("message") ? choice["message"]
                       : choice.contains("delta") ? choice["delta"]
                                                  : choice;
    const auto text = [&](const char* key) {
      return part.contains(key) && part[key].is_string() ? part[key].get<std::string>() : "";
    };
    seen_.reasoning += text("reasoning_content");
    seen_.content += text("content") + text("text");
    for (const Json& call : part.value("tool_calls", Json::array())) {
      const Json& function = call["function"];
      if (function.contains("name")) {
        seen_.calls.emplace_back(function["name"], nullptr);
        arguments_.emplace_back();
      }
      arguments_.back() += function["arguments"].get<std::string>();
    }
    if (choice["finish_reason"].is_string()) seen_.end = choice["finish_reason"];
  }
  Seen result() {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      seen_.calls[i].second = Json::parse(arguments_[i], nullptr, /*allow_exceptions=*/false);
    }
    return seen_;
  }

 private:
  Seen seen_;
  std::vector<std::string> arguments_;
};

Seen seen_choices(const HttpAnswer& answer, bool streams) {
  ChoiceFold fold;
  if (!streams) {
    fold.take(answer.json()["choices"][0]);
    return fold.result();
  }
  for (const auto& event : parse_sse(answer.body)) {
    if (!event.data.is_object()) continue;  // [DONE]
    if (event.data.contains("error")) {
      Seen out = fold.result();
      out.end = event.data["error"]["message"];
      return out;
    }
    for (const Json& choice : event.data["choices"]) fold.take(choice);
  }
  return fold.result();
}

Seen ask(TestServer& server, const Way& way, bool thinks) {
  const HttpAnswer answer = http_post(server.port(), way.path, body_of(way, thinks).dump());
  const std::string path = way.path;
  Seen out;
  if (answer.status != 200) {
    const Json body = answer.json();
    out.end = body["error"]["message"];
  } else if (path == kMessages) {
    out = seen_message(way.streams ? fold_messages(parse_sse(answer.body)) : answer.json());
  } else if (path == kResponses) {
    out = seen_response(way.streams ? fold_responses(parse_sse(answer.body)) : answer.json());
  } else {
    out = seen_choices(answer, way.streams);
  }
  out.status = answer.status;
  return out;
}

std::string name_of(const Way& way) {
  return std::string(way.path) + (way.streams ? ", streamed" : ", whole");
}

TEST(EverySurfaceTest, B014ABlockInsideOpenReasoningIsACallAndNeverText) {
  TestServer server({{.reasoning = "hmm\n\n\n" + get_time_block()}});
  for (const Way& way : kToolWays) {
    SCOPED_TRACE(name_of(way));
    const Seen seen = ask(server, way, /*thinks=*/true);
    EXPECT_EQ(seen.reasoning, "hmm");
    EXPECT_EQ(seen.content, "");
    ASSERT_EQ(seen.calls.size(), 1u);
    EXPECT_EQ(seen.calls[0].first, "get_time");
    EXPECT_EQ(seen.calls[0].second, Json::parse(R"({"tz":"Europe/Rome","n":2})"));
    EXPECT_EQ(seen.end, "tool_calls");
  }
}

TEST(EverySurfaceTest, B011OutputThatIsNoUtf8IsRepaired) {
  // A stray continuation byte, a character that ends too early, and one that the end cuts.
  TestServer server({{.say = "ok ", .say_bytes = "\xa9 \xe4\xb8! \xf0\x9f"}});
  for (const Way& way : kAllWays) {
    SCOPED_TRACE(name_of(way));
    const Seen seen = ask(server, way, /*thinks=*/false);
    EXPECT_EQ(seen.status, 200);
    EXPECT_EQ(seen.content, "ok \ufffd \ufffd! \ufffd");
    EXPECT_EQ(seen.end, "stop");
  }
}

TEST(EverySurfaceTest, B011ReasoningAndArgumentsAreRepairedToo) {
  TestServer server({{.reasoning = "hm ", .say_bytes = "\xa9"}});
  for (const Way& way : kToolWays) {
    SCOPED_TRACE(name_of(way));
    EXPECT_EQ(ask(server, way, /*thinks=*/true).reasoning, "hm \ufffd");
  }
  const std::string rest = "\xa9</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
  server.script(
      {{.say = "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get_time\">\n"
               "<｜DSML｜parameter name=\"tz\" string=\"true\">Rome ",
        .say_bytes = rest}});
  for (const Way& way : kToolWays) {
    SCOPED_TRACE(name_of(way));
    const Seen seen = ask(server, way, /*thinks=*/false);
    ASSERT_EQ(seen.calls.size(), 1u) << seen.end;
    EXPECT_EQ(seen.calls[0].second, Json::parse("{\"tz\":\"Rome \ufffd\"}"));
  }
}

TEST(EverySurfaceTest, B013SpecialTokensAreNeverShown) {
  // Each is one token of the vocabulary here, sampled where it means nothing.
  const std::string stray = "<｜Assistant｜><think>";
  TestServer server({{.reasoning = "w" + stray + "hy", .say = "Fi" + stray + "ne</think>."}});
  for (const Way& way : kAllWays) {
    SCOPED_TRACE(name_of(way));
    const Seen seen = ask(server, way, /*thinks=*/true);
    if (std::string(way.path) != kCompletions) {
      EXPECT_EQ(seen.reasoning, "why");
    }
    EXPECT_EQ(seen.content, "Fine.");
    EXPECT_EQ(seen.end, "stop");
  }
}

TEST(EverySurfaceTest, B013AnEndTokenEndsTheTurnAndABlockBehindAStrayTokenIsRead) {
  TestServer server({{.say = ""}});
  for (const std::string end : {"<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>", "<｜User｜>"}) {
    server.script({{.say = "Now" + end + " never said"}});
    for (const Way& way : kAllWays) {
      SCOPED_TRACE(name_of(way) + end);
      const Seen seen = ask(server, way, /*thinks=*/false);
      EXPECT_EQ(seen.content, "Now");
      EXPECT_EQ(seen.end, "stop");
    }
  }
  server.script({{.say = "Now.<｜Assistant｜>" + get_time_block()}});
  for (const Way& way : kToolWays) {
    SCOPED_TRACE(name_of(way));
    const Seen seen = ask(server, way, /*thinks=*/false);
    EXPECT_EQ(seen.content, "Now.");
    ASSERT_EQ(seen.calls.size(), 1u);
    EXPECT_EQ(seen.end, "tool_calls");
  }
}

TEST(EverySurfaceTest, B017AMalformedCallEndsAsAnErrorAndNeverAsText) {
  // No call at all behind the opener, and the same again after the correction.
  TestServer server(
      {{.say = "Now.\n\n<｜DSML｜tool_calls>\nget_time please\n</｜DSML｜tool_calls>"}});
  for (const Way& way :
       {Way{kChat, false}, Way{kChat, true}, Way{kMessages, false}, Way{kResponses, false}}) {
    SCOPED_TRACE(name_of(way));
    const Seen seen = ask(server, way, /*thinks=*/false);
    EXPECT_EQ(seen.content.find("DSML"), std::string::npos) << seen.content;
    EXPECT_EQ(seen.calls.size(), 0u);
    EXPECT_NE(seen.end.find("malformed tool call"), std::string::npos) << seen.end;
    // A stream's failure is in its status line if it comes before anything was said.
    if (!way.streams) {
      EXPECT_EQ(seen.status, 500);
    }
  }
  const size_t failed = static_cast<size_t>(api::ParseResult::kFailed);
  EXPECT_EQ(server.metrics().tool_parses[failed], 4);
}

TEST(EverySurfaceTest, B058DeepArgumentsAreAStringAndTheServerStays) {
  const std::string deep(3000, '[');
  TestServer::Options options;
  options.server.generator.max_tokens = 8000;
  TestServer server({{.say = block_text(call_text("get_time", {{"n", deep, false}}))}}, options);
  for (const Way& way : kToolWays) {
    SCOPED_TRACE(name_of(way));
    Json body = body_of(way, /*thinks=*/false);
    body["max_tokens"] = 6000;
    EXPECT_EQ(http_post(server.port(), way.path, body.dump()).status, 200);
  }
  EXPECT_EQ(http_get(server.port(), "/health").status, 200);
}

}  // namespace
}  // namespace tandem::test
