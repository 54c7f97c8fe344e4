#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "tests/api/server/script_texts.h"
#include "tests/support/http_client.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_server.h"

namespace tandem::test {
namespace {

using api::Json;

constexpr const char* kChat = "/v1/chat/completions";
const std::string kNoThinking = R"("thinking":{"type":"disabled"})";

/// What a client that follows the rules of a Chat stream puts together.
struct Joined {
  std::string reasoning;
  std::string content;
  std::vector<Json> calls;  // {id, name, arguments}
  std::string finish;
  Json usage;
  std::vector<int32_t> ids;
  bool done = false;
  std::string error;
};

Joined join_chat(const HttpAnswer& answer) {
  Joined out;
  EXPECT_EQ(answer.header("Content-Type"), "text/event-stream");
  for (const RawEvent& event : raw_events(answer.body)) {
    if (event.event == ":") continue;
    EXPECT_FALSE(out.done) << "data after [DONE]";
    if (event.data == "[DONE]") {
      out.done = true;
      continue;
    }
    const Json chunk = *api::parse_json(event.data);
    if (event.event == "error") {
      out.error = chunk["error"]["message"];
      continue;
    }
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    if (chunk.contains("usage")) out.usage = chunk["usage"];
    for (const Json& choice : chunk["choices"]) {
      const Json& delta = choice["delta"];
      if (delta.contains("reasoning_content")) {
        EXPECT_TRUE(out.content.empty()) << "reasoning after text";
        out.reasoning += delta["reasoning_content"].get<std::string>();
      }
      if (delta.contains("content")) out.content += delta["content"].get<std::string>();
      if (choice.contains("token_ids")) {
        for (const Json& id : choice["token_ids"]) out.ids.push_back(id);
      }
      for (const Json& call : delta.value("tool_calls", Json::array())) {
        const size_t idx = call["index"];
        EXPECT_LE(idx, out.calls.size());
        if (idx == out.calls.size()) {
          EXPECT_TRUE(call["function"].contains("name"));
          out.calls.push_back(
              {{"id", call["id"]}, {"name", call["function"]["name"]}, {"arguments", ""}});
        } else {
          EXPECT_FALSE(call.contains("id")) << "the id comes once";
          EXPECT_EQ(idx + 1, out.calls.size()) << "calls do not mix";
        }
        out.calls[idx]["arguments"] = out.calls[idx]["arguments"].get<std::string>() +
                                      call["function"]["arguments"].get<std::string>();
      }
      if (choice["finish_reason"].is_string()) out.finish = choice["finish_reason"];
    }
  }
  return out;
}

Joined stream(int port, const std::string& content, const std::string& fields) {
  return join_chat(http_post(port, kChat, chat_body(content, "\"stream\":true," + fields)));
}

TEST(ChatTest, AnswersWithText) {
  TestServer server({{.when = "", .say = "Hello there."}});
  const HttpAnswer answer = http_post(server.port(), kChat, chat_body("hi", kNoThinking));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("Content-Type"), "application/json");
  EXPECT_EQ(answer.header("Connection"), "close");
  const Json json = answer.json();
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_TRUE(json["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(json["model"], "scripted");
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["message"]["content"], "Hello there.");
  EXPECT_FALSE(choice["message"].contains("reasoning_content"));
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(
      json["usage"]["total_tokens"].get<int>(),
      json["usage"]["prompt_tokens"].get<int>() + json["usage"]["completion_tokens"].get<int>());
  EXPECT_TRUE(json["timings"].contains("ttft_ms"));
}

TEST(ChatTest, EchoesTheModelAsTheClientSpelledIt) {
  TestServer server({{.when = "", .say = "ok"}});
  const auto answer =
      http_post(server.port(), kChat, chat_body("hi", kNoThinking + R"(,"model":"gpt-oss")"));
  EXPECT_EQ(answer.json()["model"], "gpt-oss");
}

TEST(ChatTest, StreamsReasoningThenContent) {
  TestServer server({{.when = "", .reasoning = "I think of it.", .say = "The answer is 42."}});
  const Joined joined = stream(server.port(), "hi", R"("stream_options":{"include_usage":true})");
  EXPECT_EQ(joined.reasoning, "I think of it.");
  EXPECT_EQ(joined.content, "The answer is 42.");
  EXPECT_EQ(joined.finish, "stop");
  EXPECT_TRUE(joined.done);
  EXPECT_GT(joined.usage["completion_tokens"].get<int>(), 4);
  EXPECT_FALSE(joined.usage.contains("completion_tokens_details"));
}

TEST(ChatTest, StreamedAndWholeAnswersAreTheSame) {
  TestServer server(
      {{.when = "", .reasoning = "need the clock", .say = "Checking." + get_time_block()}});
  const Json whole = http_post(server.port(), kChat, chat_body("hi", kToolsJson)).json();
  const Json& message = whole["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"], "need the clock");
  EXPECT_EQ(message["content"], "Checking.");
  ASSERT_EQ(message["tool_calls"].size(), 1u);
  EXPECT_EQ(message["tool_calls"][0]["function"]["name"], "get_time");
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], R"({"tz":"Europe/Rome","n":2})");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "tool_calls");

  const Joined joined = stream(server.port(), "hi", kToolsJson);
  EXPECT_EQ(message["reasoning_content"], joined.reasoning);
  EXPECT_EQ(message["content"], joined.content);
  ASSERT_EQ(joined.calls.size(), 1u);
  EXPECT_EQ(joined.calls[0]["name"], "get_time");
  EXPECT_EQ(joined.calls[0]["arguments"], R"({"tz":"Europe/Rome","n":2})");
  EXPECT_EQ(joined.finish, "tool_calls");
  EXPECT_TRUE(joined.done);
}

TEST(ChatTest, B014ABlockInsideReasoningIsNeitherLostNorShown) {
  TestServer server({{.when = "", .reasoning = "hmm\n\n" + get_time_block()}});
  const Joined joined = stream(server.port(), "hi", kToolsJson);
  EXPECT_EQ(joined.reasoning.find("DSML"), std::string::npos) << joined.reasoning;
  ASSERT_EQ(joined.calls.size(), 1u);
  EXPECT_EQ(joined.finish, "tool_calls");
  const Json whole = http_post(server.port(), kChat, chat_body("hi", kToolsJson)).json();
  EXPECT_EQ(whole["choices"][0]["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "tool_calls");
}

TEST(ChatTest, B019ParallelCallsWithEqualArgumentsStayApart) {
  TestServer server(
      {{.when = "",
        .reasoning = "x",
        .say = block_text(
            call_text("get_time", {{"a", "1", false}}) + call_text("add", {{"a", "1", false}}))}});
  const Joined joined = stream(server.port(), "hi", kToolsJson);
  ASSERT_EQ(joined.calls.size(), 2u);
  EXPECT_EQ(joined.calls[0]["name"], "get_time");
  EXPECT_EQ(joined.calls[1]["name"], "add");
  EXPECT_EQ(joined.calls[0]["arguments"], R"({"a":1})");
  EXPECT_EQ(joined.calls[1]["arguments"], R"({"a":1})");
  EXPECT_NE(joined.calls[0]["id"], joined.calls[1]["id"]);

  const Joined single =
      stream(server.port(), "hi", std::string(kToolsJson) + R"(,"parallel_tool_calls":false)");
  ASSERT_EQ(single.calls.size(), 1u);
  EXPECT_EQ(single.finish, "tool_calls");
}

TEST(ChatTest, B017AMalformedCallIsCorrectedOrReported) {
  const std::string broken = "Now.\n\n<｜DSML｜toolcalls>\n" +
                             call_text("add", {{"a", "1", false}}) + "</｜DSML｜tool_calls>";
  TestServer server(
      {{.when = "Tool call error", .reasoning = "again", .say = get_time_block()},
       {.when = "", .reasoning = "x", .say = broken}});
  const Json whole = http_post(server.port(), kChat, chat_body("hi", kToolsJson)).json();
  const Json& choice = whole["choices"][0];
  const std::string content = choice["message"]["content"];
  EXPECT_EQ(content.find("DSML"), std::string::npos) << content;
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");

  // A model that cannot do better: the failure is reported, whole and streamed.
  server.script({{.when = "", .reasoning = "x", .say = broken}});
  const Joined joined = stream(server.port(), "hi", kToolsJson);
  EXPECT_EQ(joined.content.find("DSML"), std::string::npos) << joined.content;
  EXPECT_TRUE(joined.calls.size() == 1 || !joined.error.empty());
}

TEST(ChatTest, B016ABlockThatNeverClosesEndsWithItsBudget) {
  TestServer server(
      {{.when = "",
        .reasoning = "x",
        .say = "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"add\">\n"
               "<｜DSML｜parameter name=\"a\" string=\"true\">" +
               std::string(4000, 'a')}});
  const Joined joined =
      stream(server.port(), "hi", std::string(kToolsJson) + R"(,"max_tokens":60)");
  EXPECT_EQ(joined.finish, "length");
  EXPECT_TRUE(joined.done);
  const Json whole =
      http_post(
          server.port(), kChat, chat_body("hi", std::string(kToolsJson) + R"(,"max_tokens":60)"))
          .json();
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "length");
  EXPECT_FALSE(whole["choices"][0]["message"].contains("tool_calls"));
}

TEST(ChatTest, ToolSyntaxIsTextWithoutTools) {
  TestServer server({{.when = "", .reasoning = "x", .say = "See <tool_calls> in the manual."}});
  const Joined joined = stream(server.port(), "hi", R"("max_tokens":200)");
  EXPECT_EQ(joined.content, "See <tool_calls> in the manual.");
  EXPECT_TRUE(joined.calls.empty());
}

TEST(ChatTest, StopStringsCutTheAnswer) {
  TestServer server({{.when = "", .say = "One two three four"}});
  const std::string fields = kNoThinking + R"(,"stop":["three","zzz"])";
  const Json whole = http_post(server.port(), kChat, chat_body("hi", fields)).json();
  EXPECT_EQ(whole["choices"][0]["message"]["content"], "One two ");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(stream(server.port(), "hi", fields).content, "One two ");
}

TEST(ChatTest, BudgetsEndWithLength) {
  TestServer server({{.when = "", .say = "la ", .endless = true}});
  const Json whole =
      http_post(server.port(), kChat, chat_body("hi", kNoThinking + R"(,"max_tokens":7)")).json();
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(whole["usage"]["completion_tokens"], 7);
  const Json none =
      http_post(server.port(), kChat, chat_body("hi", kNoThinking + R"(,"max_tokens":0)")).json();
  EXPECT_EQ(none["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(none["usage"]["completion_tokens"], 0);
}

TEST(ChatTest, ContextOverflowHasItsOwnShape) {
  TestServer::Options options;
  options.stage.context_tokens = 64;
  TestServer server({{.when = "", .say = "ok"}}, options);
  std::string words;
  for (int i = 0; i < 100; ++i) words += "word ";
  const HttpAnswer answer = http_post(server.port(), kChat, chat_body(words, kNoThinking));
  EXPECT_EQ(answer.status, 400);
  const Json error = answer.json()["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "messages");
  EXPECT_EQ(error["n_ctx"], 64);
  EXPECT_GE(error["n_prompt_tokens"].get<int>(), 100);
}

TEST(ChatTest, SeveralChoicesAreAllAnswered) {
  TestServer server({{.when = "", .say = "Same for all."}});
  const Json whole =
      http_post(server.port(), kChat, chat_body("hi", kNoThinking + R"(,"n":3)")).json();
  ASSERT_EQ(whole["choices"].size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(whole["choices"][i]["index"], i);
    EXPECT_EQ(whole["choices"][i]["message"]["content"], "Same for all.");
  }
  const HttpAnswer answer =
      http_post(server.port(), kChat, chat_body("hi", kNoThinking + R"(,"n":3,"stream":true)"));
  std::map<int, std::string> contents;
  for (const RawEvent& event : raw_events(answer.body)) {
    if (event.data == "[DONE]") continue;
    const Json chunk = *api::parse_json(event.data);
    for (const Json& choice : chunk["choices"]) {
      contents[choice["index"].get<int>()] += choice["delta"].value("content", "");
    }
  }
  EXPECT_EQ(contents.size(), 3u);
  for (const auto& [_, content] : contents) EXPECT_EQ(content, "Same for all.");
}

TEST(ChatTest, LogprobsCoverExactlyTheContent) {
  TestServer server({{.when = "", .reasoning = "hm", .say = "Hello wörld."}});
  const Json whole =
      http_post(server.port(), kChat, chat_body("hi", R"("logprobs":true,"top_logprobs":2)"))
          .json();
  std::string bytes;
  for (const Json& token : whole["choices"][0]["logprobs"]["content"]) {
    for (const Json& byte : token["bytes"]) bytes += static_cast<char>(byte.get<int>());
    EXPECT_EQ(token["top_logprobs"].size(), 2u);
    EXPECT_NEAR(token["logprob"].get<double>(), 0.0, 1e-3);
  }
  EXPECT_EQ(bytes, "Hello wörld.");
}

TEST(ChatTest, TokenIdsJoinToTheWholeAnswer) {
  TestServer server({{.when = "", .reasoning = "hm", .say = "Hello there."}});
  const Json whole =
      http_post(server.port(), kChat, chat_body("hi", R"("return_token_ids":true)")).json();
  const auto ids = whole["choices"][0]["token_ids"].get<std::vector<int32_t>>();
  EXPECT_EQ(static_cast<int>(ids.size()), whole["usage"]["completion_tokens"].get<int>());
  EXPECT_EQ(
      static_cast<int>(whole["prompt_token_ids"].size()),
      whole["usage"]["prompt_tokens"].get<int>());
  const Joined joined = stream(server.port(), "hi", R"("return_token_ids":true)");
  EXPECT_TRUE(std::equal(joined.ids.begin(), joined.ids.end(), ids.begin()));
}

TEST(ChatTest, ProgressIsReportedWhereAsked) {
  TestServer server({{.when = "", .say = "ok"}});
  const HttpAnswer answer = http_post(
      server.port(), kChat,
      chat_body("hi", kNoThinking + R"(,"stream":true,"return_progress":true)"));
  EXPECT_NE(answer.body.find("prompt_progress"), std::string::npos);
}

TEST(ChatTest, B011InputThatIsNoUtf8IsRefused) {
  TestServer server({{.when = "", .say = "ok"}});
  const HttpAnswer refused = http_post(server.port(), kChat, chat_body("\xc4\xe3\xba\xc3"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(refused.json().contains("error"));
}

TEST(ChatTest, B010ATagInReplayedTextIsText) {
  TestServer server({{.when = "", .say = "ok"}});
  const std::string body =
      R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"hello </think> )"
      R"(world"},{"role":"user","content":"b"}],"return_token_ids":true,)" +
      kNoThinking + "}";
  const Json whole = http_post(server.port(), kChat, body).json();
  const std::string prompt = server.stage().prompts().back();
  EXPECT_NE(prompt.find("hello </think> world"), std::string::npos) << prompt;
}

TEST(ChatTest, B025StructuredOutputIsEnforcedOrRefused) {
  TestServer server({{.when = "", .say = "no json at all"}});
  const auto ask = [&](const std::string& format) {
    return http_post(
        server.port(), kChat,
        chat_body("hi", kNoThinking + R"(,"max_tokens":40,"response_format":)" + format));
  };
  const HttpAnswer object = ask(R"({"type":"json_object"})");
  ASSERT_EQ(object.status, 200) << object.body;
  const std::string content = object.json()["choices"][0]["message"]["content"];
  const size_t first = content.find_first_not_of(" \t\r\n");
  EXPECT_TRUE(first == std::string::npos || content[first] == '{') << content;
  const HttpAnswer broken =
      ask(R"({"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":)"
          R"({"type":"string","pattern":"\\q("}}})");
  EXPECT_EQ(broken.status, 400);
  EXPECT_NE(
      broken.json()["error"]["message"].get<std::string>().find("pattern"), std::string::npos);
  EXPECT_EQ(broken.json()["error"]["param"], "response_format.json_schema.schema");
}

TEST(ChatTest, RequiredAndNamedToolChoicesAreEnforced) {
  TestServer server({{.when = "", .say = "no thanks"}});
  const auto ask = [&](const std::string& choice) {
    return stream(server.port(), "hi", std::string(kToolsJson) + "," + kNoThinking + "," + choice);
  };
  EXPECT_EQ(ask(R"("tool_choice":"auto")").content, "no thanks");

  // The script would rather talk. The tokens that the choice forces stand where its words would,
  // and then it goes on as if it had meant to call.
  std::vector<int32_t> opening;
  const LoadedModel& loaded = server.loaded();
  EXPECT_OK(loaded.tokenizer->encode(loaded.protocol->call_opening("add"), opening));
  const std::string words(opening.size(), 'x');
  server.script({{.when = "", .say_bytes = words + "\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"}});
  const Joined named = ask(R"("tool_choice":{"type":"function","function":{"name":"add"}})");
  ASSERT_EQ(named.calls.size(), 1u) << named.content;
  EXPECT_EQ(named.calls[0]["name"], "add");
  EXPECT_EQ(named.calls[0]["arguments"], "{}");
  EXPECT_EQ(named.content, "");
  EXPECT_EQ(named.finish, "tool_calls");
  EXPECT_NE(
      server.stage().prompts().back().find("You must answer with a tool call."), std::string::npos);

  // Which tool a required call names is the model's choice: here it spells one out.
  opening.clear();
  EXPECT_OK(loaded.tokenizer->encode(loaded.protocol->call_opening(""), opening));
  server.script(
      {{.when = "",
        .say_bytes = std::string(opening.size(), 'x') +
                     "get_time\">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"}});
  const Joined required = ask(R"("tool_choice":"required")");
  ASSERT_EQ(required.calls.size(), 1u) << required.content;
  EXPECT_EQ(required.calls[0]["name"], "get_time");
  EXPECT_EQ(required.finish, "tool_calls");
}

TEST(ChatTest, ToolChoiceNoneDropsTheTools) {
  TestServer server({{.when = "", .say = "plain"}});
  (void)http_post(
      server.port(), kChat,
      chat_body("hi", std::string(kToolsJson) + R"(,"tool_choice":"none",)" + kNoThinking));
  EXPECT_EQ(server.stage().prompts().back().find("get_time"), std::string::npos);
}

TEST(ChatTest, ReplayOfACallIsByteForByteWhatWasSampled) {
  // Sampled with unusual spacing: only exact replay can bring that back.
  const std::string block = "\n\n<｜DSML｜tool_calls>\n\n" +
                            call_text("get_time", {{"tz", "Rome", true}}) +
                            "\n</｜DSML｜tool_calls>";
  TestServer server(
      {{.when = "<tool_result>", .reasoning = "ok", .say = "It is noon."},
       {.when = "", .reasoning = "clock", .say = "Checking." + block}});
  const Json first = http_post(server.port(), kChat, chat_body("hi", kToolsJson)).json();
  Json message = first["choices"][0]["message"];
  ASSERT_EQ(message["tool_calls"].size(), 1u);

  const auto replay = [&](const Json& assistant) {
    Json body = *api::parse_json(chat_body("hi", kToolsJson));
    body["messages"].push_back(assistant);
    body["messages"].push_back(
        {{"role", "tool"},
         {"tool_call_id", assistant["tool_calls"][0]["id"]},
         {"content", "12:00"}});
    return http_post(server.port(), kChat, body.dump()).json();
  };
  const Json second = replay(message);
  EXPECT_EQ(second["choices"][0]["message"]["content"], "It is noon.");
  EXPECT_NE(server.stage().prompts().back().find(block), std::string::npos)
      << server.stage().prompts().back();
  // All that the first turn computed is reused.
  EXPECT_GE(
      second["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(),
      first["usage"]["total_tokens"].get<int>() - 1);

  // An edited call is rendered as the client says it.
  message["tool_calls"][0]["function"]["arguments"] = R"({"tz":"Paris"})";
  (void)replay(message);
  EXPECT_EQ(server.stage().prompts().back().find(block), std::string::npos);
  EXPECT_NE(server.stage().prompts().back().find("Paris"), std::string::npos);
}

TEST(ChatTest, AnEngineFailureIsAnErrorAndNeverAStop) {
  TestServer server(
      {{.when = "",
        .say = "one two three four five",
        .token_delay = std::chrono::milliseconds(150),
        .fail_at = 3}});
  const HttpAnswer whole = http_post(server.port(), kChat, chat_body("hi", kNoThinking));
  EXPECT_EQ(whole.status, 500);
  EXPECT_EQ(whole.json()["error"]["type"], "server_error");
  const Joined joined = stream(server.port(), "hi", kNoThinking);
  EXPECT_FALSE(joined.error.empty());
  EXPECT_FALSE(joined.done);
  EXPECT_EQ(joined.finish, "");
  // The next request is served.
  server.script({{.when = "", .say = "fine"}});
  EXPECT_EQ(http_post(server.port(), kChat, chat_body("hi", kNoThinking)).status, 200);
}

TEST(CompletionsTest, AnswersAndStreamsText) {
  TestServer server({{.when = "", .say = "Once upon a time."}});
  const std::string body = R"({"prompt":["Tell me"],"logprobs":2,)" + kNoThinking;
  const Json whole = http_post(server.port(), "/v1/completions", body + "}").json();
  EXPECT_EQ(whole["object"], "text_completion");
  EXPECT_EQ(whole["choices"][0]["text"], "Once upon a time.");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(whole["choices"][0]["logprobs"]["text_offset"][0], 0);
  const HttpAnswer answer =
      http_post(server.port(), "/v1/completions", body + R"(,"stream":true})");
  std::string text;
  for (const RawEvent& event : raw_events(answer.body)) {
    if (event.data == "[DONE]") continue;
    text += (*api::parse_json(event.data))["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, "Once upon a time.");
}

TEST(CompletionsTest, RefusesWhatItCannotDo) {
  TestServer server({{.when = "", .say = "x"}});
  for (const auto& [fields, param] : std::vector<std::pair<std::string, std::string>>{
           {R"("prompt":"a","echo":true)", "echo"},
           {R"("prompt":"a","best_of":2)", "best_of"},
           {R"("prompt":"a","suffix":"b")", "suffix"},
           {R"("prompt":[1,2])", "prompt"},
           {R"("x":1)", "prompt"}}) {
    const HttpAnswer answer = http_post(server.port(), "/v1/completions", "{" + fields + "}");
    EXPECT_EQ(answer.status, 400) << fields;
    EXPECT_EQ(answer.json()["error"]["param"], param);
  }
}

}  // namespace
}  // namespace tandem::test
