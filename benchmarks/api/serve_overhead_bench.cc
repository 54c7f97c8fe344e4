// What the HTTP server adds to a bare engine: time to the first token and time per token. One JSON
// line a case; the exit code is 1 if a floor is missed.
//   serve_overhead_bench --model FILE [--real] [--text FILE] [--samples N]
// Without --real the engine plays a script and costs next to nothing, so that only the server is
// left; with it, the model of FILE computes. With --text the prompts are that text, as often as
// their length takes, as of a client that sends long documents: words that repeat are tokenized
// faster than text is.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "api/server/api_server.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file_stream.h"
#include "base/thread_pool.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/loaded_model.h"
#include "coordinator/engine/service.h"
#include "tests/api/scripted/scripted_stage.h"

namespace tandem {
namespace {

using SteadyClock = std::chrono::steady_clock;
using TimePoint = SteadyClock::time_point;

constexpr double kTtftFloorUs = 3000;
constexpr double kPerTokenFloorUs = 50;
constexpr int kNumWarmups = 3;

double us_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

struct Timing {
  double ttft_us = 0;
  double per_token_us = 0;  // of the whole answer: chunks that come together hide no time
};

Timing timing_of(TimePoint start, const std::vector<TimePoint>& tokens) {
  TANDEM_CHECK(!tokens.empty());
  const double total = us_between(start, tokens.back());
  return {us_between(start, tokens.front()), total / static_cast<double>(tokens.size())};
}

/// Notes when each token came.
class TimingListener final : public GenerationListener {
 public:
  void on_token(const TokenStep& /*step*/) override { tokens.push_back(SteadyClock::now()); }
  void on_finish(const GenerationResult& result, std::span<const Event> /*events*/) override {
    TANDEM_CHECK(result.status.ok());
    done.set_value();
  }
  std::vector<TimePoint> tokens;
  std::promise<void> done;
};

/// An engine, a server in front of it, and the two ways to ask them.
class Bench {
 public:
  Bench(LoadedModel& loaded, Pipeline& pipeline, const std::string& model_id)
      : loaded_(loaded),
        engine_(pipeline, loaded.tokenizer, *loaded.protocol, clock_, EngineOptions{}),
        service_(engine_, kHttpQueueMax) {
    api::ApiServerOptions options;
    options.http.port = 0;
    options.model.id = model_id;
    options.model.context_tokens = pipeline.context_tokens();
    options.model.completion_tokens_max = pipeline.context_tokens();
    auto server = api::ApiServer::create(options, service_, loaded.tokenizer, *loaded.protocol);
    TANDEM_CHECK(server.ok());
    server_ = std::move(server).value();
    thread_ = std::thread([this] { server_->serve(); });
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    server_->stop(std::chrono::milliseconds(0));
    thread_.join();
  }

  std::vector<int32_t> prompt_of(const std::vector<Message>& messages) const {
    const auto pieces = loaded_.protocol->render(messages, RenderOptions{});
    TANDEM_CHECK(pieces.ok());
    std::vector<int32_t> tokens;
    TANDEM_CHECK(loaded_.tokenizer->encode(pieces.value(), tokens).ok());
    return tokens;
  }

  /// Straight to the engine's thread.
  Timing bare(std::vector<int32_t> prompt, int64_t max_tokens) {
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.sampling.temperature = 0;
    request.max_tokens = max_tokens;
    request.ignore_stop_tokens = true;
    const auto listener = std::make_shared<TimingListener>();
    request.listener = listener;
    const TimePoint start = SteadyClock::now();
    TANDEM_CHECK(service_.submit(std::move(request)).ok());
    listener->done.get_future().wait();
    return timing_of(start, listener->tokens);
  }

  /// As a client sees it: from before the connection to each chunk with text.
  Timing served(const std::vector<Message>& messages, int64_t max_tokens) {
    nlohmann::json body;
    for (const Message& message : messages) {
      const char* role = message.role == Role::kUser ? "user" : "assistant";
      body["messages"].push_back({{"role", role}, {"content", message.content}});
    }
    body["temperature"] = 0;
    body["thinking"] = {{"type", "disabled"}};
    body["max_tokens"] = max_tokens;
    body["stream"] = true;
    const std::string json = body.dump();
    const std::string request =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Length: " +
        std::to_string(json.size()) + "\r\n\r\n" + json;
    const TimePoint start = SteadyClock::now();
    const int fd = connect_to(server_->port());
    size_t sent = 0;
    while (sent < request.size()) {
      const ssize_t count = ::send(fd, request.data() + sent, request.size() - sent, 0);
      TANDEM_CHECK(count > 0);
      sent += static_cast<size_t>(count);
    }
    const std::vector<TimePoint> tokens = read_chunks(fd);
    ::close(fd);
    return timing_of(start, tokens);
  }

 private:
  static int connect_to(int port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    TANDEM_CHECK(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    return fd;
  }

  static std::vector<TimePoint> read_chunks(int fd) {
    constexpr std::string_view kText = R"("delta":{"content":")";
    std::vector<TimePoint> tokens;
    std::string rest;
    char buffer[65536];
    for (;;) {
      const ssize_t count = ::recv(fd, buffer, sizeof(buffer), 0);
      if (count <= 0) return tokens;
      const TimePoint now = SteadyClock::now();
      rest.append(buffer, static_cast<size_t>(count));
      size_t at = 0;
      while ((at = rest.find(kText)) != std::string::npos) {
        tokens.push_back(now);
        rest.erase(0, at + kText.size());
      }
      rest.erase(0, rest.size() - std::min(rest.size(), kText.size() - 1));
    }
  }

  SystemClock clock_;
  LoadedModel& loaded_;
  Engine engine_;
  EngineService service_;
  std::unique_ptr<api::ApiServer> server_;
  std::thread thread_;
};

struct Options {
  std::string model;
  std::string text;
  bool real = false;
  int samples = 51;
};

/// A prompt's body of `num_words` words.
std::string body_of(const Options& options, int num_words) {
  std::string out;
  if (options.text.empty()) {
    for (int i = 0; i < num_words; ++i) out += i % 2 == 0 ? " river" : " stone";
    return out;
  }
  const auto text = read_text_file(options.text, 16 << 20);
  TANDEM_CHECK(text.ok() && text->find(' ') != std::string::npos);
  size_t at = 0;
  for (int i = 0; i < num_words; ++i) {
    const size_t end = std::min(text->find(' ', at + 1), text->size());
    out.append(*text, at, end - at);
    at = end == text->size() ? 0 : end;
  }
  return out;
}

/// What a case asks.
struct Case {
  int num_words = 0;
  int64_t max_tokens = 1;
  /// The words are the first turn of a conversation that goes on. Otherwise each prompt is new from
  /// its first word on, and no state is reused.
  bool goes_on = false;
};

std::vector<Message> messages_of(const Case& of, const std::string& body, int serial) {
  const auto message = [](Role role, std::string content) {
    Message out;
    out.role = role;
    out.content = std::move(content);
    return out;
  };
  const std::string asks = std::to_string(serial) + " again:";
  if (!of.goes_on) return {message(Role::kUser, asks + body)};
  return {
      message(Role::kUser, body), message(Role::kAssistant, "Read."), message(Role::kUser, asks)};
}

/// Alternates both ways, so that what disturbs the machine disturbs both. True: the floors are met.
bool run_case(Bench& bench, const Options& options, const Case& asked) {
  std::vector<double> bare_ttft, served_ttft, bare_token, served_token;
  int64_t prompt_tokens = 0;
  int serial = 0;
  const int64_t max_tokens = asked.max_tokens;
  const std::string body = body_of(options, asked.num_words);
  const auto messages = [&] { return messages_of(asked, body, ++serial); };
  for (int i = -kNumWarmups; i < options.samples; ++i) {
    const std::vector<int32_t> prompt = bench.prompt_of(messages());
    prompt_tokens = static_cast<int64_t>(prompt.size());
    const Timing bare = bench.bare(prompt, max_tokens);
    const Timing served = bench.served(messages(), max_tokens);
    if (i < 0) continue;
    bare_ttft.push_back(bare.ttft_us);
    served_ttft.push_back(served.ttft_us);
    bare_token.push_back(bare.per_token_us);
    served_token.push_back(served.per_token_us);
  }
  bool met = true;
  const auto report = [&](const char* name, const std::vector<double>& bare,
                          const std::vector<double>& served, double floor_us) {
    const double overhead = quantile(served, 0.5) - quantile(bare, 0.5);
    met = met && (options.real || overhead < floor_us);  // a model's own jitter is larger
    nlohmann::ordered_json line;
    line["bench"] = name;
    line["engine"] = options.real ? "model" : "scripted";
    line["prompt"] = options.text.empty() ? "two words" : "text";
    line["goes_on"] = asked.goes_on;
    line["prompt_tokens"] = prompt_tokens;
    line["generated_tokens"] = max_tokens;
    line["samples"] = options.samples;
    line["bare_median_us"] = quantile(bare, 0.5);
    line["served_median_us"] = quantile(served, 0.5);
    line["served_p99_us"] = quantile(served, 0.99);
    line["overhead_us"] = overhead;
    if (!options.real) line["floor_us"] = floor_us;
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  };
  report("serve_ttft", bare_ttft, served_ttft, kTtftFloorUs);
  if (max_tokens > 1) report("serve_per_token", bare_token, served_token, kPerTokenFloorUs);
  return met;
}

Result<Pipeline> make_pipeline(
    const Options& options, const LoadedModel& loaded, ThreadPool& pool) {
  if (options.real) {
    LocalStageOptions stage;
    stage.numerics = Numerics::kFast;
    stage.num_banks = 4;
    stage.context_tokens = loaded.model->spec().context_tokens_max;
    stage.max_rows = 512;
    return make_local_pipeline(loaded, stage, pool);
  }
  test::ScriptLine line;
  line.say.emplace();
  for (int i = 0; i < 2000; ++i) *line.say += "again and ";
  TANDEM_TRY_ASSIGN(auto script, test::Script::create({line}, loaded.tokenizer));
  std::vector<std::unique_ptr<StageExecutor>> stages;
  stages.push_back(
      std::make_unique<test::ScriptedStage>(std::move(script), test::ScriptedStageOptions{}));
  return Pipeline::create(std::move(stages));
}

int run(int argc, char** argv) {
  CLI::App program("What the HTTP server adds to a bare engine.");
  Options options;
  program.add_option("--model", options.model, "GGUF file")->required();
  program.add_option("--text", options.text, "File that the prompts are made of");
  program.add_flag("--real", options.real, "Compute with the model instead of playing a script");
  program.add_option("--samples", options.samples, "Of each case")->check(CLI::Range(1, 100000));
  CLI11_PARSE(program, argc, argv);

  auto loaded = load_model(options.model);
  TANDEM_CHECK(loaded.ok());
  ThreadPool pool(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  auto pipeline = make_pipeline(options, loaded.value(), pool);
  TANDEM_CHECK(pipeline.ok());
  Bench bench(loaded.value(), pipeline.value(), "bench");
  std::vector<Case> cases = {{10, options.real ? 64 : 1000}, {500}};
  if (!options.real) cases.insert(cases.end(), {{8000}, {25000}, {25000, 1, true}});
  bool met = true;
  for (const Case& asked : cases) met = run_case(bench, options, asked) && met;
  return met ? 0 : 1;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  return tandem::run(argc, argv);
}
