// What clients do to a server: leaving, waiting, flooding, lying.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/api/server/script_texts.h"
#include "tests/support/http_client.h"
#include "tests/support/paths.h"
#include "tests/support/test_server.h"

namespace tandem::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kChat = "/v1/chat/completions";
const std::string kNoThinking = R"("thinking":{"type":"disabled"})";

/// Waits until `holds`; returns how long that took, or 10 s.
milliseconds wait_until(const std::function<bool()>& holds) {
  const auto started = steady_clock::now();
  while (!holds() && steady_clock::now() - started < std::chrono::seconds(10)) {
    std::this_thread::sleep_for(milliseconds(2));
  }
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - started);
}

ScriptLine endless(int token_ms) {
  return {.when = "", .say = "la ", .endless = true, .token_delay = milliseconds(token_ms)};
}

TEST(ConnectionTest, B034AClientThatLeavesEndsItsGeneration) {
  TestServer server({endless(5)});
  for (const char* stream : {"false", "true"}) {
    SCOPED_TRACE(stream);
    RawClient client(server.port());
    client.send(http_request(
        "POST", kChat, chat_body("hi", kNoThinking + R"(,"max_tokens":4000,"stream":)" + stream)));
    wait_until([&] { return server.engine().stats.num_running == 1; });
    std::this_thread::sleep_for(milliseconds(60));  // some tokens
    client.close();
    const auto took = wait_until([&] { return server.engine().stats.num_running == 0; });
    EXPECT_LT(took, milliseconds(200 + 100));  // the case's bound, and a busy machine's scheduling
  }
  EXPECT_EQ(server.metrics().disconnects[static_cast<size_t>(api::Phase::kDecode)], 2);
}

TEST(ConnectionTest, B034AHalfClosedClientGetsItsWholeAnswer) {
  TestServer server(
      {{.when = "", .say = "one two three four five", .token_delay = milliseconds(40)}});
  RawClient client(server.port());
  client.send(http_request("POST", kChat, chat_body("hi", kNoThinking)));
  client.shut_down_sending();
  const HttpAnswer answer = parse_answer(client.read_all());
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json()["choices"][0]["message"]["content"], "one two three four five");
}

TEST(ConnectionTest, AClientThatLeavesTheQueueIsNeverServed) {
  TestServer::Options options;
  options.stage.num_banks = 1;
  TestServer server({endless(20)}, options);
  RawClient busy(server.port());
  busy.send(http_request("POST", kChat, chat_body("a", kNoThinking + R"(,"max_tokens":4000)")));
  wait_until([&] { return server.engine().stats.num_running == 1; });
  {
    RawClient waiting(server.port());
    waiting.send(http_request("POST", kChat, chat_body("b", kNoThinking)));
    wait_until([&] { return server.engine().stats.num_waiting == 1; });
  }
  // The connection's thread and the engine's each note it in their own time.
  wait_until([&] {
    return server.engine().stats.num_waiting == 0 &&
           server.metrics().disconnects[static_cast<size_t>(api::Phase::kQueued)] == 1;
  });
  EXPECT_EQ(server.engine().stats.num_waiting, 0);
  EXPECT_EQ(server.metrics().disconnects[static_cast<size_t>(api::Phase::kQueued)], 1);
  EXPECT_EQ(server.stage().prompts().size(), 1u);
}

TEST(ConnectionTest, B035ManyCancelledRequestsLeaveEveryBankFree) {
  TestServer server({endless(1)});
  for (int round = 0; round < 50; ++round) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<RawClient>(server.port()));
      clients.back()->send(
          http_request("POST", kChat, chat_body("x", kNoThinking + R"(,"stream":true)")));
    }
    if (round % 10 == 0) wait_until([&] { return server.engine().stats.num_running > 0; });
  }
  wait_until([&] {
    return server.engine().stats.num_running + server.engine().stats.num_waiting == 0 &&
           server.metrics().inflight() == 0;
  });
  for (const auto& bank : server.engine().banks) EXPECT_FALSE(bank.busy);
  server.script({{.when = "", .say = "still here"}});
  EXPECT_EQ(http_post(server.port(), kChat, chat_body("hi", kNoThinking)).status, 200);
}

TEST(ConnectionTest, HeartbeatsComeWhileThePromptIsRead) {
  TestServer::Options options;
  options.server.heartbeat_interval = milliseconds(100);
  options.stage.prompt_step_time = milliseconds(900);
  TestServer server({{.when = "", .say = "ok"}}, options);
  const HttpAnswer answer =
      http_post(server.port(), kChat, chat_body("hi", kNoThinking + R"(,"stream":true)"));
  int beats = 0;
  for (const RawEvent& event : raw_events(answer.body)) beats += event.event == ":";
  EXPECT_GE(beats, 3);
  EXPECT_NE(answer.body.find("[DONE]"), std::string::npos);
}

TEST(ConnectionTest, B056HostileRequestsAreRefusedAndTheServerStays) {
  TestServer::Options options;
  options.server.http.head_timeout = milliseconds(400);
  options.server.http.body_idle_timeout = milliseconds(300);
  TestServer server({{.when = "", .say = "ok"}}, options);
  const auto status = [&](const std::string& bytes) {
    RawClient client(server.port());
    client.send(bytes);
    return parse_answer(client.read_all()).status;
  };
  EXPECT_EQ(status("GET / HTTP/1.1\r\nA: " + std::string(4 << 20, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 10000; ++i) many += "X: y\r\n";
  EXPECT_EQ(status(many + "\r\n"), 431);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 9223372036854775808\r\n\r\n"), 413);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}"), 400);
  EXPECT_EQ(
      status("POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"), 400);
  EXPECT_EQ(
      status("POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\n{}"), 408);  // the rest never comes

  // A byte now and then does not keep a connection open beyond the deadline.
  RawClient slow(server.port());
  const auto started = steady_clock::now();
  for (const char c : std::string("GET /health HTTP/1.1\r\nA: b")) {
    if (!slow.send(std::string(1, c))) break;
    std::this_thread::sleep_for(milliseconds(30));
  }
  EXPECT_EQ(parse_answer(slow.read_all()).status, 408);
  EXPECT_LT(steady_clock::now() - started, std::chrono::seconds(3));

  RawClient chunked(server.port());
  const std::string body = chat_body("hi", kNoThinking);
  char size[16];
  std::snprintf(size, sizeof(size), "%zx\r\n", body.size());
  chunked.send(
      std::string("POST ") + kChat + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + size +
      body + "\r\n0\r\n\r\n");
  EXPECT_EQ(parse_answer(chunked.read_all()).status, 200);
}

TEST(ConnectionTest, B058DeepJsonIsRefusedEverywhere) {
  TestServer server({{.when = "", .say = "ok"}});
  const std::string deep(60000, '[');
  const std::string schema = std::string(10000, '[') + std::string(10000, ']');
  for (const char* path :
       {kChat, "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"}) {
    SCOPED_TRACE(path);
    EXPECT_EQ(http_post(server.port(), path, deep).status, 400);
    const HttpAnswer refused = http_post(
        server.port(), path,
        R"({"prompt":"x","input":"x","messages":[{"role":"user","content":"x"}],"tools":[{)"
        R"("type":"function","name":"f","parameters":)" +
            schema + R"(,"input_schema":)" + schema + R"(,"function":{"name":"f","parameters":)" +
            schema + "}}]}");
    EXPECT_EQ(refused.status, 400);
    EXPECT_NE(refused.body.find("128"), std::string::npos) << refused.body;
  }
  EXPECT_EQ(http_get(server.port(), "/health").status, 200);
}

TEST(ConnectionTest, ClientsBeyondTheCapAreToldToComeBack) {
  TestServer::Options options;
  options.server.http.clients_max = 2;
  TestServer server({endless(20)}, options);
  RawClient first(server.port());
  RawClient second(server.port());
  for (RawClient* client : {&first, &second}) {
    client->send(http_request("POST", kChat, chat_body("a", kNoThinking + R"(,"stream":true)")));
    client->read_until("data:");
  }
  const HttpAnswer shed = http_get(server.port(), "/health");
  EXPECT_EQ(shed.status, 503);
  EXPECT_EQ(shed.header("Retry-After"), "10");
  first.close();
  wait_until([&] { return server.metrics().inflight() == 1; });
  bool is_served = false;
  wait_until([&] { return is_served = http_get(server.port(), "/health").status == 200; });
  EXPECT_TRUE(is_served);
}

TEST(ConnectionTest, AFullQueueIsToldToComeBack) {
  TestServer::Options options;
  options.stage.num_banks = 1;
  options.queue_max = 2;
  TestServer server({{.when = "", .say = "ok"}}, options);
  StepGate& gate = server.stage().gate();
  const auto expect_refused = [&] {
    const HttpAnswer shed = http_post(server.port(), kChat, chat_body("a", kNoThinking));
    EXPECT_EQ(shed.status, 429);
    EXPECT_EQ(shed.header("Retry-After"), "5");
    EXPECT_EQ(shed.json()["error"]["type"], "rate_limit_error");
  };
  gate.hold_after(0);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(http_request("POST", kChat, chat_body("a", kNoThinking)));
    wait_until([&] {
      const EngineStats stats = server.engine().stats;
      return stats.num_running + stats.num_waiting == i + 1;
    });
  }
  // The first one's step is held, the engine has not seen the others.
  ASSERT_TRUE(gate.wait_until_held());
  expect_refused();
  // One step later it has.
  gate.hold_after(1);
  ASSERT_TRUE(gate.wait_until_held());
  expect_refused();
  gate.open();
  for (const auto& client : clients) EXPECT_EQ(parse_answer(client->read_all()).status, 200);
  EXPECT_EQ(http_post(server.port(), kChat, chat_body("a", kNoThinking)).status, 200);
}

TEST(ConnectionTest, ShutdownEndsStreamsWithAnError) {
  TestServer server({endless(5)});
  RawClient client(server.port());
  client.send(http_request("POST", kChat, chat_body("a", kNoThinking + R"(,"stream":true)")));
  std::string bytes = client.read_until("la");
  server.stop(milliseconds(50));
  bytes += client.read_all();
  EXPECT_NE(bytes.find("event: error"), std::string::npos);
  EXPECT_NE(bytes.find("shutting down"), std::string::npos);
  EXPECT_EQ(bytes.find("[DONE]"), std::string::npos);
  server.join();
}

TEST(ConnectionTest, ShutdownLetsRunningRequestsEnd) {
  TestServer server(
      {{.when = "", .say = "one two three four five", .token_delay = milliseconds(30)}});
  RawClient client(server.port());
  client.send(http_request("POST", kChat, chat_body("a", kNoThinking)));
  wait_until([&] { return server.engine().stats.num_running == 1; });
  server.stop(std::chrono::seconds(10));
  EXPECT_EQ(parse_answer(client.read_all()).status, 200);
  server.join();
}

TEST(ConnectionTest, APortInUseIsAnErrorThatNamesIt) {
  TestServer server({{.when = "", .say = "ok"}});
  TestServer::Options options;
  options.server.http.port = server.port();
  class : public api::HttpHandler {
    void handle(api::HttpExchange& /*exchange*/) override {}
    api::HttpReply refuse(const api::ApiError& /*error*/, std::string_view /*path*/) override {
      return {};
    }
  } handler;
  const auto second = api::HttpServer::listen(options.server.http, handler);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  EXPECT_NE(second.status().message().find(address + ": Address already in use"), std::string::npos)
      << second.status().message();
  EXPECT_EQ(http_get(server.port(), "/health").status, 200);
}

TEST(RoutesTest, KnownPathsAnswerAndOthersDoNot) {
  TestServer server({{.when = "", .say = "ok"}});
  EXPECT_EQ(http_get(server.port(), "/health").status, 200);
  EXPECT_EQ(http_get(server.port(), "/").status, 200);
  EXPECT_EQ(http_get(server.port(), "/nowhere").status, 404);
  EXPECT_EQ(http_get(server.port(), "/nowhere").json()["error"]["message"], "unknown endpoint");
  const HttpAnswer wrong = http_get(server.port(), kChat);
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("Allow"), "POST, OPTIONS");
  RawClient head(server.port());
  head.send(http_request("HEAD", "/health", {}));
  const HttpAnswer answer = parse_answer(head.read_all());
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "");
}

TEST(RoutesTest, ModelsAreListedUnderIdAndAliases) {
  TestServer server({{.when = "", .say = "ok"}});
  const auto list = http_get(server.port(), "/v1/models").json();
  ASSERT_EQ(list["data"].size(), 1u);
  EXPECT_EQ(list["data"][0]["id"], "scripted");
  EXPECT_EQ(http_get(server.port(), "/v1/models/scripted").status, 200);
  EXPECT_EQ(http_get(server.port(), "/v1/models/deepseek-v4-flash").json()["id"], "scripted");
  EXPECT_EQ(http_get(server.port(), "/v1/models/Motif-Technologies/Motif-3").status, 200);
  EXPECT_EQ(http_get(server.port(), "/v1/models/gpt-4").status, 404);
}

TEST(RoutesTest, CorsIsOptIn) {
  TestServer closed({{.when = "", .say = "ok"}});
  EXPECT_EQ(http_get(closed.port(), "/health").header("Access-Control-Allow-Origin"), "");
  TestServer::Options options;
  options.server.http.cors = true;
  TestServer open({{.when = "", .say = "ok"}}, options);
  RawClient client(open.port());
  client.send(http_request("OPTIONS", kChat, {}));
  const HttpAnswer preflight = parse_answer(client.read_all());
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.header("Content-Length"), "0");
  EXPECT_EQ(preflight.header("Content-Type"), "");
  EXPECT_EQ(preflight.header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(http_get(open.port(), "/nowhere").header("Access-Control-Allow-Origin"), "*");
  const HttpAnswer stream =
      http_post(open.port(), kChat, chat_body("hi", kNoThinking + R"(,"stream":true)"));
  EXPECT_EQ(stream.header("Access-Control-Allow-Origin"), "*");
}

TEST(RoutesTest, ApiKeysCloseTheDoor) {
  TestServer::Options options;
  options.server.api_keys = {"secret", "other"};
  TestServer server({{.when = "", .say = "ok"}}, options);
  EXPECT_EQ(http_get(server.port(), "/health").status, 200);
  EXPECT_EQ(http_get(server.port(), "/v1/models").status, 401);
  EXPECT_EQ(
      http_get(server.port(), "/v1/models", {{"Authorization", "Bearer wrong1"}}).status, 401);
  EXPECT_EQ(http_get(server.port(), "/v1/models", {{"Authorization", "Bearer other"}}).status, 200);
  EXPECT_EQ(http_get(server.port(), "/v1/models", {{"x-api-key", "secret"}}).status, 200);
}

TEST(RoutesTest, StatsAndMetricsAddUp) {
  TestServer server({{.when = "", .say = "one two three"}});
  (void)http_post(server.port(), kChat, chat_body("hi", kNoThinking));
  const HttpAnswer text = http_get(server.port(), "/v1/stats");
  EXPECT_TRUE(text.header("Content-Type").starts_with("text/plain"));
  const auto stats = http_get(server.port(), "/v1/stats", {{"Accept", "application/json"}}).json();
  EXPECT_EQ(stats["requests"]["completed"], 1);
  EXPECT_EQ(stats["requests"]["inflight"], 0);
  EXPECT_GT(stats["tokens"]["generated"].get<int>(), 0);
  EXPECT_EQ(stats["banks"].size(), 4u);
  const HttpAnswer metrics = http_get(server.port(), "/metrics");
  EXPECT_EQ(metrics.header("Content-Type"), "text/plain; version=0.0.4");
  for (const char* line :
       {"tandem_requests_started_total 1\n", "tandem_requests_total{outcome=\"completed\"} 1\n",
        "tandem_requests_total{outcome=\"failed\"} 0\n",
        "tandem_surface_requests_total{surface=\"openai_chat\"} 1\n",
        "tandem_tool_parse_total{result=\"ok\"} 0\n",
        "tandem_client_disconnects_total{phase=\"prefill\"} 0\n"}) {
    EXPECT_NE(metrics.body.find(line), std::string::npos) << line << metrics.body;
  }
}

TEST(RoutesTest, TheTraceHoldsPromptAndAnswer) {
  TestServer::Options options;
  options.server.trace_path = temp_path("trace.txt");
  TestServer server({{.when = "", .say = "traced answer"}}, options);
  (void)http_post(server.port(), kChat, chat_body("traced question", kNoThinking));
  const std::string trace = read_text(options.server.trace_path);
  for (const char* part :
       {"===== request 1 ", "traced question", "traced answer", "<｜User｜>",
        "--- cache decision ---", "outcome: completed"}) {
    EXPECT_NE(trace.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace tandem::test
