// Messages and Responses on the nano model, over HTTP.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/api/support/nano_server.h"
#include "tests/api/support/openapi.h"
#include "tests/api/support/sse.h"

namespace tandem {
namespace {

using api::Json;
using test::NanoAnswer;
using test::NanoServer;
using ::testing::HasSubstr;

const Json& weather_schema() {
  static const Json kSchema = Json::parse(R"({"type": "object", "properties": {
      "city": {"type": "string", "description": "City name"},
      "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, "required": ["city"]})");
  return kSchema;
}

constexpr const char* kQuestion = "What is the weather in Paris?";
constexpr const char* kDescription = "Get the current weather for a city";
constexpr const char* kResult = R"({"temperature": 21, "condition": "sunny"})";

class NanoSurfacesTest : public ::testing::Test {
 protected:
  /// Posts, expects 200, and judges the body, or each event, by the description.
  Json answer(const std::string& path, const Json& body) {
    EXPECT_EQ(test::joined(description_.check_request(path, body)), "") << body;
    const NanoAnswer got = server_.post(path, body);
    EXPECT_EQ(got.status, 200) << got.body;
    if (!body.value("stream", false)) {
      EXPECT_EQ(test::joined(description_.check_body(path, "post", 200, got.json())), "")
          << got.body;
      return got.json();
    }
    EXPECT_EQ(got.content_type, "text/event-stream");
    const auto events = test::parse_sse(got.body);
    for (const auto& [name, data] : events) {
      EXPECT_EQ(test::joined(description_.check_event(path, data)), "") << data;
    }
    return path == "/v1/messages" ? test::fold_messages(events) : test::fold_responses(events);
  }

  void expect_refused(const std::string& path, const Json& body, const std::string& phrase) {
    const NanoAnswer got = server_.post(path, body);
    EXPECT_EQ(got.status, 400) << got.body;
    EXPECT_EQ(test::joined(description_.check_body(path, "post", 400, got.json())), "");
    EXPECT_THAT(got.body, HasSubstr(phrase));
  }

  static Json messages_body(Json messages) {
    return {
        {"model", "nano"},
        {"max_tokens", 200},
        {"temperature", 0},
        {"thinking", {{"type", "disabled"}}},
        {"messages", std::move(messages)}};
  }

  static Json with_weather(Json body) {
    body["tools"] = Json::array(
        {{{"name", "get_weather"},
          {"description", kDescription},
          {"input_schema", weather_schema()}}});
    return body;
  }

  static Json responses_body(Json input) {
    return {
        {"model", "nano"},
        {"max_output_tokens", 200},
        {"temperature", 0},
        {"reasoning", {{"effort", "none"}}},
        {"input", std::move(input)}};
  }

  static Json with_weather_function(Json body) {
    body["tools"] = Json::array(
        {{{"type", "function"},
          {"name", "get_weather"},
          {"description", kDescription},
          {"parameters", weather_schema()}}});
    return body;
  }

  NanoServer server_;
  test::OpenApi description_;
};

TEST_F(NanoSurfacesTest, MessagesCallsAToolAndAnswersFromItsResult) {
  for (const bool stream : {false, true}) {
    SCOPED_TRACE(stream);
    Json body =
        with_weather(messages_body(Json::array({{{"role", "user"}, {"content", kQuestion}}})));
    body["stream"] = stream;
    const Json first = answer("/v1/messages", body);
    ASSERT_EQ(first["stop_reason"], "tool_use");
    const Json& call = first["content"].back();
    EXPECT_EQ(call["name"], "get_weather");
    EXPECT_EQ(call["input"]["city"], "Paris");

    body["messages"].push_back({{"role", "assistant"}, {"content", first["content"]}});
    body["messages"].push_back(
        {{"role", "user"},
         {"content",
          Json::array(
              {{{"type", "tool_result"}, {"tool_use_id", call["id"]}, {"content", kResult}}})}});
    const Json second = answer("/v1/messages", body);
    EXPECT_EQ(second["stop_reason"], "end_turn");
    EXPECT_THAT(second["content"][0]["text"].get<std::string>(), HasSubstr("21 degrees"));
    // What was sampled is read back as it was: nothing of the first turn is computed again but the
    // last token, which was never an input.
    const int64_t seen = first["usage"]["input_tokens"].get<int64_t>() +
                         first["usage"]["cache_read_input_tokens"].get<int64_t>() +
                         first["usage"]["output_tokens"].get<int64_t>();
    EXPECT_GE(second["usage"]["cache_read_input_tokens"], seen - 1);
  }
}

TEST_F(NanoSurfacesTest, AnEditedCallIsWrittenAnew) {
  Json body =
      with_weather(messages_body(Json::array({{{"role", "user"}, {"content", kQuestion}}})));
  Json first = answer("/v1/messages", body);
  ASSERT_EQ(first["stop_reason"], "tool_use");
  Json& call = first["content"].back();
  call["input"]["city"] = "London";
  body["messages"].push_back({{"role", "assistant"}, {"content", first["content"]}});
  body["messages"].push_back(
      {{"role", "user"},
       {"content",
        Json::array(
            {{{"type", "tool_result"}, {"tool_use_id", call["id"]}, {"content", kResult}}})}});
  const Json second = answer("/v1/messages", body);
  const int64_t seen = first["usage"]["input_tokens"].get<int64_t>() +
                       first["usage"]["output_tokens"].get<int64_t>();
  EXPECT_LT(second["usage"]["cache_read_input_tokens"], seen - 1);
}

TEST_F(NanoSurfacesTest, ResponsesCallsAToolAndAnswersFromItsResult) {
  for (const bool stream : {false, true}) {
    SCOPED_TRACE(stream);
    Json body = with_weather_function(
        responses_body(Json::array({{{"role", "user"}, {"content", kQuestion}}})));
    body["stream"] = stream;
    const Json first = answer("/v1/responses", body);
    const Json& call = first["output"].back();
    ASSERT_EQ(call["type"], "function_call");
    EXPECT_EQ(Json::parse(call["arguments"].get<std::string>())["city"], "Paris");
    for (const Json& item : first["output"]) body["input"].push_back(item);
    body["input"].push_back(
        {{"type", "function_call_output"}, {"call_id", call["call_id"]}, {"output", kResult}});
    const Json second = answer("/v1/responses", body);
    EXPECT_EQ(second["status"], "completed");
    EXPECT_THAT(
        second["output"][0]["content"][0]["text"].get<std::string>(), HasSubstr("21 degrees"));
    EXPECT_GE(
        second["usage"]["input_tokens_details"]["cached_tokens"],
        first["usage"]["total_tokens"].get<int64_t>() - 1);
  }
}

TEST_F(NanoSurfacesTest, ResultsAloneContinueTheirConversation) {
  Json body =
      with_weather(messages_body(Json::array({{{"role", "user"}, {"content", kQuestion}}})));
  const Json first = answer("/v1/messages", body);
  ASSERT_EQ(first["stop_reason"], "tool_use");
  const Json result = {
      {"role", "user"},
      {"content", Json::array(
                      {{{"type", "tool_result"},
                        {"tool_use_id", first["content"].back()["id"]},
                        {"content", kResult}}})}};
  Json whole = body;
  whole["messages"].push_back({{"role", "assistant"}, {"content", first["content"]}});
  whole["messages"].push_back(result);
  body["messages"] = Json::array({result});
  const Json alone = answer("/v1/messages", body);
  EXPECT_EQ(alone["content"], answer("/v1/messages", whole)["content"]);
  EXPECT_GT(alone["usage"]["cache_read_input_tokens"], 0);

  body["messages"][0]["content"][0]["tool_use_id"] = "toolu_unknown";
  expect_refused("/v1/messages", body, "send the whole conversation");

  Json input = with_weather_function(
      responses_body(Json::array({{{"role", "user"}, {"content", kQuestion}}})));
  const Json called = answer("/v1/responses", input)["output"].back();
  input["input"] = Json::array(
      {{{"type", "function_call_output"}, {"call_id", called["call_id"]}, {"output", kResult}}});
  const Json response = answer("/v1/responses", input);
  EXPECT_THAT(
      response["output"][0]["content"][0]["text"].get<std::string>(), HasSubstr("21 degrees"));
}

TEST_F(NanoSurfacesTest, HiddenReasoningStaysInTheConversation) {
  Json body = with_weather_function(
      responses_body(Json::array({{{"role", "user"}, {"content", kQuestion}}})));
  body.erase("reasoning");
  body["seed"] = 7;
  body["max_output_tokens"] = 1000;
  body["tool_choice"] = "required";
  const Json first = answer("/v1/responses", body);
  ASSERT_EQ(first["output"].size(), 1u) << first;
  ASSERT_EQ(first["output"][0]["type"], "function_call");
  EXPECT_GT(first["usage"]["output_tokens_details"]["reasoning_tokens"], 0);
  // The client has not seen the reasoning, yet what follows continues from it.
  body["input"].push_back(first["output"][0]);
  body["input"].push_back(
      {{"type", "function_call_output"},
       {"call_id", first["output"][0]["call_id"]},
       {"output", kResult}});
  const Json second = answer("/v1/responses", body);
  EXPECT_GE(
      second["usage"]["input_tokens_details"]["cached_tokens"],
      first["usage"]["total_tokens"].get<int64_t>() - 1);
}

TEST_F(NanoSurfacesTest, ThinkingComesBeforeTheAnswer) {
  Json body = messages_body(Json::array({{{"role", "user"}, {"content", "What is 37 + 45?"}}}));
  body.erase("thinking");
  body["max_tokens"] = 2000;
  for (const bool stream : {false, true}) {
    body["stream"] = stream;
    const Json message = answer("/v1/messages", body);
    ASSERT_EQ(message["content"].size(), 2u) << message;
    EXPECT_EQ(message["content"][0]["type"], "thinking");
    EXPECT_NE(message["content"][0]["signature"], "");
    EXPECT_EQ(message["content"][1]["type"], "text");
  }
  Json input = responses_body("What is 37 + 45?");
  input["reasoning"] = {{"summary", "auto"}};
  input["max_output_tokens"] = 2000;
  for (const bool stream : {false, true}) {
    input["stream"] = stream;
    const Json response = answer("/v1/responses", input);
    ASSERT_EQ(response["output"].size(), 2u) << response;
    EXPECT_EQ(response["output"][0]["type"], "reasoning");
    EXPECT_EQ(response["output"][1]["type"], "message");
  }
}

TEST_F(NanoSurfacesTest, B020AcceptsSystemMessagesInsideTheConversation) {
  Json body = messages_body(Json::array(
      {{{"role", "user"}, {"content", "What is the capital of France?"}},
       {{"role", "system"}, {"content", "Be brief."}}}));
  const Json message = answer("/v1/messages", body);
  EXPECT_EQ(message["stop_reason"], "end_turn");
  // The text is part of the prompt.
  const Json with = server_.post("/v1/messages/count_tokens", body).json();
  body["messages"].erase(1);
  const Json without = server_.post("/v1/messages/count_tokens", body).json();
  EXPECT_GT(with["input_tokens"], without["input_tokens"]);
}

TEST_F(NanoSurfacesTest, B022ANonceInFrontDoesNotSpoilTheCache) {
  std::string long_text;
  for (int i = 0; i < 400; ++i) long_text += "Rule " + std::to_string(i) + " says so. ";
  const auto ask = [&](const std::string& nonce) {
    Json body = messages_body(Json::array({{{"role", "user"}, {"content", "Hello!"}}}));
    body["max_tokens"] = 4;
    body["system"] = Json::array(
        {{{"type", "text"}, {"text", "x-anthropic-billing-header: cc_version=2; cch=" + nonce}},
         {{"type", "text"}, {"text", long_text}}});
    return answer("/v1/messages", body)["usage"];
  };
  const Json first = ask("a94b1");
  const Json second = ask("07cd2");
  const int64_t num_prompt = first["input_tokens"];
  EXPECT_GT(num_prompt, 1000);
  EXPECT_LT(second["input_tokens"].get<double>(), 0.01 * static_cast<double>(num_prompt));
}

TEST_F(NanoSurfacesTest, B023CountsTheTokensThatTheRequestReports) {
  Json body =
      with_weather(messages_body(Json::array({{{"role", "user"}, {"content", kQuestion}}})));
  body["system"] = "You are a helpful assistant.";
  const auto count = [&] {
    Json counted = body;
    counted.erase("max_tokens");
    return answer("/v1/messages/count_tokens", counted)["input_tokens"].get<int64_t>();
  };
  const int64_t counted = count();
  const Json usage = answer("/v1/messages", body)["usage"];
  EXPECT_EQ(
      counted, usage["input_tokens"].get<int64_t>() +
                   usage["cache_read_input_tokens"].get<int64_t>() +
                   usage["cache_creation_input_tokens"].get<int64_t>());

  // It answers while generations run.
  std::vector<std::thread> others;
  for (int i = 0; i < 6; ++i) {  // more than there are banks
    others.emplace_back([&] {
      Json story = messages_body(Json::array(
          {{{"role", "user"}, {"content", "Write a short story about a fox and a lamp."}}}));
      story["max_tokens"] = 400;
      EXPECT_EQ(server_.post("/v1/messages", story).status, 200);
    });
  }
  EXPECT_EQ(count(), counted);
  for (std::thread& other : others) other.join();
}

TEST_F(NanoSurfacesTest, B025ASchemaIsKeptOrRefusedByName) {
  const Json bad = Json::parse(
      R"({"type":"object","properties":{"a":{"type":"string","pattern":"\\p"}},"required":["a"]})");
  const Json input = {{"model", "nano"}, {"input", "hi"}};
  const Json chat = {
      {"model", "nano"}, {"messages", Json::array({{{"role", "user"}, {"content", "hi"}}})}};
  Json body = input;
  body["text"]["format"] = {{"type", "json_schema"}, {"name", "n"}, {"schema", bad}};
  expect_refused("/v1/responses", body, "pattern");
  expect_refused("/v1/responses", body, "text.format.schema");
  body = chat;
  body["response_format"] = {
      {"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"strict", true}, {"schema", bad}}}};
  expect_refused("/v1/chat/completions", body, "pattern");
  expect_refused("/v1/chat/completions", body, "response_format.json_schema.schema");
  body = chat;
  body["output_config"]["format"] = {{"type", "json_schema"}, {"schema", bad}};
  expect_refused("/v1/messages", body, "pattern");
}

TEST_F(NanoSurfacesTest, AnswersFollowTheirSchema) {
  const Json schema = Json::parse(
      R"({"type":"object","properties":{"city":{"enum":["Paris","Rome"]},"ok":{"type":"boolean"}},
          "required":["city","ok"],"additionalProperties":false})");
  const auto check = [&](const std::string& text) {
    const Json value = Json::parse(text, nullptr, false);
    ASSERT_TRUE(value.is_object()) << text;
    EXPECT_TRUE(value["city"] == "Paris" || value["city"] == "Rome") << text;
    EXPECT_TRUE(value["ok"].is_boolean()) << text;
    EXPECT_EQ(value.size(), 2u) << text;
  };
  for (const bool thinks : {false, true}) {
    SCOPED_TRACE(thinks);
    Json input = responses_body("What is the capital of France?");
    input["max_output_tokens"] = 2000;
    input["seed"] = 3;
    if (thinks) input.erase("reasoning");
    input["text"]["format"] = {{"type", "json_schema"}, {"name", "n"}, {"schema", schema}};
    check(answer("/v1/responses", input)["output"].back()["content"][0]["text"]);

    Json messages = messages_body(
        Json::array({{{"role", "user"}, {"content", "What is the capital of France?"}}}));
    messages["max_tokens"] = 2000;
    messages["seed"] = 3;
    if (thinks) messages.erase("thinking");
    messages["output_config"]["format"] = {{"type", "json_schema"}, {"schema", schema}};
    messages["stream"] = true;
    check(answer("/v1/messages", messages)["content"].back()["text"]);
  }
}

TEST_F(NanoSurfacesTest, ChatAndCompletionsFitTheDescription) {
  Json chat = {
      {"model", "nano"},
      {"max_tokens", 60},
      {"temperature", 0},
      {"reasoning_effort", "none"},
      {"logprobs", true},
      {"top_logprobs", 2},
      {"messages", Json::array({{{"role", "user"}, {"content", kQuestion}}})}};
  chat["tools"] = Json::array(
      {{{"type", "function"},
        {"function",
         {{"name", "get_weather"},
          {"description", kDescription},
          {"parameters", weather_schema()}}}}});
  const Json completion = {{"model", "nano"}, {"max_tokens", 8}, {"prompt", "Hello!"}};
  for (const auto& [path, request] :
       {std::pair<std::string, Json>{"/v1/chat/completions", chat},
        std::pair<std::string, Json>{"/v1/completions", completion}}) {
    SCOPED_TRACE(path);
    Json body = request;
    EXPECT_EQ(test::joined(description_.check_request(path, body)), "");
    EXPECT_EQ(
        test::joined(description_.check_body(path, "post", 200, server_.post(path, body).json())),
        "");
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    auto events = test::parse_sse(server_.post(path, body).body);
    ASSERT_GE(events.size(), 3u);
    EXPECT_TRUE(events.back().data.is_null());  // [DONE]
    events.pop_back();
    for (const auto& event : events) {
      EXPECT_EQ(test::joined(description_.check_event(path, event.data)), "") << event.data;
    }
  }
}

TEST_F(NanoSurfacesTest, ErrorsHaveEachSurfacesForm) {
  const NanoAnswer messages = server_.post_text("/v1/messages", "{");
  EXPECT_EQ(messages.status, 400);
  EXPECT_EQ(messages.json()["type"], "error");
  EXPECT_EQ(messages.json()["error"]["type"], "invalid_request_error");
  const NanoAnswer responses = server_.post_text("/v1/responses", "{");
  EXPECT_EQ(responses.status, 400);
  EXPECT_EQ(test::joined(description_.check("OpenAiError", responses.json())), "");

  std::string long_text;
  for (int i = 0; i < 6000; ++i) long_text += "more and more ";
  expect_refused(
      "/v1/messages", messages_body(Json::array({{{"role", "user"}, {"content", long_text}}})),
      "prompt is too long: ");
  expect_refused("/v1/responses", responses_body(long_text), "context_length_exceeded");
}

TEST_F(NanoSurfacesTest, AnswersAPromptThatAlmostFillsTheContext) {
  std::string text;
  for (int i = 0; i < 8150; ++i) text += " a";
  Json body = messages_body(Json::array({{{"role", "user"}, {"content", text}}}));
  body["max_tokens"] = 4;
  const Json message = answer("/v1/messages", body);
  const Json& usage = message["usage"];
  EXPECT_GE(
      usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>() +
          usage["cache_creation_input_tokens"].get<int>(),
      8150);
  EXPECT_GE(usage["output_tokens"].get<int>(), 1);
  // The same again comes from the state that is kept.
  EXPECT_GE(answer("/v1/messages", body)["usage"]["cache_read_input_tokens"].get<int>(), 8000);
}

TEST_F(NanoSurfacesTest, ServesTheDescription) {
  const NanoAnswer got = server_.get("/openapi.json");
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.json(), description_.document());
  for (const std::string path : {"/v1/models", "/health", "/v1/stats"}) {
    EXPECT_EQ(
        test::joined(description_.check_body(path, "get", 200, server_.get(path).json())), "");
  }
}

}  // namespace
}  // namespace tandem
