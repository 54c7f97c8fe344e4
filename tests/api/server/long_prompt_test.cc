// Prompts of tens of thousands of tokens, prompts that do not fit, and bodies that nobody should
// send.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/api/server/script_texts.h"
#include "tests/support/http_client.h"
#include "tests/support/test_server.h"

namespace tandem::test {
namespace {

using api::Json;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kMessages = "/v1/messages";
constexpr const char* kResponses = "/v1/responses";
constexpr const char* kCompletions = "/v1/completions";

/// A body for `path` that asks with `text`.
Json body_of(const std::string& path, const std::string& text, bool streams = false) {
  Json body = {{"stream", streams}, {"thinking", {{"type", "disabled"}}}, {"max_tokens", 20}};
  if (path == kCompletions) {
    body["prompt"] = text;
  } else if (path == kResponses) {
    body["input"] = text;
  } else {
    body["messages"] = Json::array({{{"role", "user"}, {"content", text}}});
  }
  return body;
}

/// " a" is one token of the nano vocabulary.
std::string words(int64_t count) {
  std::string out;
  for (int64_t i = 0; i < count; ++i) out += " a";
  return out;
}

int64_t count_tokens(TestServer& server, const std::string& text) {
  Json body = body_of(kMessages, text);
  body.erase("stream");
  const HttpAnswer answer = http_post(server.port(), "/v1/messages/count_tokens", body.dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  return answer.json()["input_tokens"];
}

TEST(LongPromptTest, PromptsOfAnyLengthAreAnsweredWholeAndStreamed) {
  TestServer::Options options;
  options.stage.context_tokens = 70000;
  TestServer server({{.say = "Read it all."}}, options);
  // Around the chunks of a step (512 rows) and what agents send.
  for (const int64_t length : {511, 512, 513, 8090, 8191, 8192, 8193, 65000}) {
    SCOPED_TRACE(length);
    const std::string text = words(length);
    const int64_t num_tokens = count_tokens(server, text);
    EXPECT_GE(num_tokens, length);
    EXPECT_LE(num_tokens, length + 8);  // the turn's markers
    const Json whole = http_post(server.port(), kChat, body_of(kChat, text).dump()).json();
    EXPECT_EQ(whole["choices"][0]["message"]["content"], "Read it all.");
    EXPECT_EQ(whole["usage"]["prompt_tokens"], num_tokens);
    for (const char* path : {kChat, kMessages, kResponses, kCompletions}) {
      SCOPED_TRACE(path);
      const HttpAnswer answer = http_post(server.port(), path, body_of(path, text, true).dump());
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.body.find("event: error"), std::string::npos);
      std::string said;
      for (const RawEvent& event : raw_events(answer.body)) {
        const auto data = api::parse_json(event.data);
        if (!data.ok()) continue;  // [DONE]
        const std::string type = data->value("type", "");
        if (type == "content_block_delta") said += (*data)["delta"]["text"].get<std::string>();
        if (type == "response.output_text.delta") said += (*data)["delta"].get<std::string>();
        if (!data->contains("choices") || (*data)["choices"].empty()) continue;
        const Json& choice = (*data)["choices"][0];
        said += choice.contains("delta") ? choice["delta"].value("content", "")
                                         : choice["text"].get<std::string>();
      }
      EXPECT_EQ(said, "Read it all.");
    }
  }
}

TEST(LongPromptTest, TheLastTokenOfTheContextIsTheBound) {
  TestServer::Options options;
  options.stage.context_tokens = 1000;
  TestServer server({{.say = "Fits."}}, options);
  const int64_t frame = count_tokens(server, words(100)) - 100;
  // One token is left to answer with: an ordinary end by length.
  const HttpAnswer fits =
      http_post(server.port(), kChat, body_of(kChat, words(999 - frame)).dump());
  EXPECT_EQ(fits.status, 200);
  EXPECT_EQ(fits.json()["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(fits.json()["usage"]["completion_tokens"], 1);

  const std::string text = words(1000 - frame);
  ASSERT_EQ(count_tokens(server, text), 1000);
  for (const auto& [path, param] : std::vector<std::pair<std::string, std::string>>{
           {kChat, "messages"}, {kResponses, "input"}, {kCompletions, "prompt"}}) {
    for (const bool streams : {false, true}) {
      SCOPED_TRACE(path);
      const HttpAnswer answer =
          http_post(server.port(), path, body_of(path, words(1000), streams).dump());
      EXPECT_EQ(answer.status, 400);
      const Json error = answer.json()["error"];
      EXPECT_EQ(error["type"], "invalid_request_error");
      EXPECT_EQ(error["code"], "context_length_exceeded");
      EXPECT_EQ(error["param"], param);
      EXPECT_GE(error["n_prompt_tokens"], 1000);
      EXPECT_EQ(error["n_ctx"], 1000);
    }
  }
  const HttpAnswer answer = http_post(server.port(), kMessages, body_of(kMessages, text).dump());
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json()["type"], "error");
  const Json error = answer.json()["error"];
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_EQ(error["message"], "prompt is too long: 1000 tokens > 999 maximum");
  EXPECT_EQ(error["n_prompt_tokens"], 1000);
  EXPECT_EQ(error["n_ctx"], 1000);
}

TEST(LongPromptTest, BodiesBeyondTheBoundAreRefusedUnread) {
  TestServer server({{.say = "ok"}});
  for (const char* path : {kChat, kMessages}) {
    SCOPED_TRACE(path);
    const std::string request = std::string("POST ") + path + " HTTP/1.1\r\n";
    RawClient announced(server.port());
    announced.send(
        request + "Content-Length: " + std::to_string(kHttpBodyBytesMax + 1) + "\r\n\r\n");
    RawClient chunked(server.port());
    chunked.send(request + "Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n");
    for (RawClient* client : {&announced, &chunked}) {
      const HttpAnswer answer = parse_answer(client->read_all());
      EXPECT_EQ(answer.status, 413);
      const bool is_messages = std::string(path) == kMessages;
      EXPECT_EQ(
          answer.json()["error"]["type"],
          is_messages ? "request_too_large" : "invalid_request_error");
      EXPECT_EQ(answer.json().value("type", ""), is_messages ? "error" : "");
    }
  }
  EXPECT_EQ(http_get(server.port(), "/health").status, 200);
}

TEST(LongPromptTest, HugeBodiesThatMayBeSentGetAnAnswerThatSaysWhatIsWrong) {
  TestServer server({{.say = "ok"}});
  // 16 MiB of text are far more than the context.
  const HttpAnswer text =
      http_post(server.port(), kChat, body_of(kChat, std::string(16 << 20, 'x')).dump());
  EXPECT_EQ(text.status, 400);
  EXPECT_EQ(text.json()["error"]["code"], "context_length_exceeded");
  // More values than a request may have.
  std::string values = R"({"messages":[)";
  for (int i = 0; i < (1 << 20); ++i) values += "0,";
  const HttpAnswer many = http_post(server.port(), kChat, values + "0]}");
  EXPECT_EQ(many.status, 400);
  EXPECT_NE(many.json()["error"]["message"].get<std::string>().find("values"), std::string::npos)
      << many.body;
  // And more messages.
  Json body = body_of(kChat, "hi");
  for (int i = 0; i < 65536; ++i) body["messages"].push_back(body["messages"][0]);
  const HttpAnswer messages = http_post(server.port(), kChat, body.dump());
  EXPECT_EQ(messages.status, 400);
  EXPECT_EQ(messages.json()["error"]["param"], "messages");
  EXPECT_EQ(http_post(server.port(), kChat, body_of(kChat, "hi").dump()).status, 200);
}

}  // namespace
}  // namespace tandem::test
