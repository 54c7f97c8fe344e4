#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <thread>

#include "api/server/api_server.h"
#include "apps/commands.h"
#include "apps/runtime.h"
#include "base/file_stream.h"
#include "base/log.h"
#include "coordinator/engine/service.h"

namespace tandem {
namespace {

constexpr size_t kKeyFileBytesMax = 1 << 20;
constexpr int kExitInterrupted = 130;

struct ServeOptions {
  RuntimeOptions runtime;
  api::ApiServerOptions server;
  std::string effort = "low";
  std::string replay = "keep";
  std::string reminder = "on";
  std::string key_file;
  bool no_exact_replay = false;
  int grace_s = 30;
};

api::Effort effort_of(const std::string& word) {
  if (word == "off") return api::Effort::kNone;
  if (word == "high") return api::Effort::kHigh;
  if (word == "max") return api::Effort::kMax;
  return api::Effort::kLow;
}

/// One key a line; empty lines and those that start with '#' say nothing.
std::vector<std::string> read_keys(const std::string& path) {
  std::istringstream text(require_ok(read_text_file(path, kKeyFileBytesMax)));
  std::vector<std::string> keys;
  for (std::string line; std::getline(text, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line.front() != '#') keys.push_back(line);
  }
  if (keys.empty()) throw CommandFailed{invalid_argument(str_cat(path, " holds no key"))};
  return keys;
}

/// Waits for SIGINT and SIGTERM in a thread of its own: the first one stops the server in order,
/// the second ends the program.
class SignalThread {
 public:
  /// To be made before any other thread, which inherits that the signals are blocked.
  SignalThread() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGUSR1);  // of finish()
    (void)pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    (void)std::signal(SIGPIPE, SIG_IGN);
  }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;
  ~SignalThread() { finish(); }

  void start(api::ApiServer& server, std::chrono::milliseconds grace) {
    thread_ = std::thread([this, &server, grace] {
      if (next() == SIGUSR1) return;
      std::fprintf(stderr, "stopping; once more to stop at once\n");
      std::thread stopper([&server, grace] { server.stop(grace); });
      if (next() != SIGUSR1) ::_exit(kExitInterrupted);
      stopper.join();
    });
  }
  void finish() {
    if (!thread_.joinable()) return;
    (void)pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

 private:
  int next() {
    int signal = 0;
    (void)sigwait(&signals_, &signal);
    return signal;
  }

  sigset_t signals_{};
  std::thread thread_;
};

void serve(ServeOptions options) {
  SignalThread signals;
  api::ApiServerOptions& server_options = options.server;
  if (!options.key_file.empty()) server_options.api_keys = read_keys(options.key_file);
  server_options.generator.effort = effort_of(options.effort);
  server_options.generator.replays_reasoning = options.replay == "keep";
  server_options.generator.reminds_of_calls = options.reminder == "on";
  if (options.no_exact_replay) server_options.generator.tool_ids_max = 0;

  const std::string path = require_ok(resolve_model_path(options.runtime.model));
  const auto runtime = require_ok(Runtime::create(options.runtime));
  const LoadedModel& loaded = runtime->loaded();
  api::ServedModel& model = server_options.model;
  server_options.version = TANDEM_VERSION;
  if (model.id.empty()) model.id = api::model_id_from_path(path);
  model.name = loaded.model->spec().name;
  model.context_tokens = runtime->engine().context_tokens();
  model.completion_tokens_max = server_options.generator.max_tokens;

  EngineService engine(runtime->engine(), kHttpQueueMax);
  const auto server = require_ok(
      api::ApiServer::create(server_options, engine, loaded.tokenizer, *loaded.protocol));
  signals.start(*server, std::chrono::seconds(options.grace_s));
  std::printf("listening on %s\n", server->url().c_str());
  std::fflush(stdout);
  server->serve();
  signals.finish();
}

}  // namespace

void add_serve_command(CLI::App& program) {
  auto options = std::make_shared<ServeOptions>();
  api::ApiServerOptions& server = options->server;
  api::GeneratorOptions& generator = server.generator;
  options->runtime.num_banks = 4;
  CLI::App* command =
      program.add_subcommand("serve", "Serve the OpenAI and Anthropic APIs over HTTP");
  add_runtime_options(*command, options->runtime);
  command->add_option("--host", server.http.host, "Address to listen on")->capture_default_str();
  command->add_option("--port", server.http.port, "Port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option(
          "-n,--tokens", generator.max_tokens, "Tokens to generate if a request names no limit")
      ->check(CLI::Range(int64_t{1}, kContextTokensMax))
      ->capture_default_str();
  command
      ->add_option(
          "--sessions", options->runtime.num_banks, "Conversations that are kept and run at once")
      ->check(CLI::Range(int64_t{1}, kBanksMax))
      ->capture_default_str();
  command->add_flag("--cors", server.http.cors, "Let web pages of other origins use the server");
  command
      ->add_option(
          "--api-key-file", options->key_file, "Ask for one of the keys in this file, one a line")
      ->type_name("FILE");
  command
      ->add_option(
          "--model-id", server.model.id, "The model's name for clients; the default is its file's")
      ->type_name("ID");
  command
      ->add_option("--reasoning-effort", options->effort, "Thinking where a request does not say")
      ->check(CLI::IsMember({"off", "low", "high", "max"}))
      ->capture_default_str();
  command->add_flag(
      "--reasoning-effort-native", generator.effort_native,
      "Serve high and max as clients ask; otherwise as low");
  command->add_flag(
      "--client-sampling-in-thinking", generator.client_sampling_in_thinking,
      "Heed temperature, top_p, top_k and min_p of requests that think too");
  command
      ->add_option(
          "--reasoning-replay", options->replay, "Reasoning of older turns where tools are in play")
      ->check(CLI::IsMember({"keep", "drop"}))
      ->capture_default_str();
  command
      ->add_option(
          "--tool-call-reminder", options->reminder,
          "Remind of the call format in tool results of long conversations")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  command
      ->add_option(
          "--tool-memory-max-ids", generator.tool_ids_max, "Calls whose exact text is remembered")
      ->check(CLI::Range(int64_t{0}, int64_t{10000000}))
      ->capture_default_str();
  command->add_flag(
      "--disable-exact-dsml-tool-replay", options->no_exact_replay,
      "Write replayed calls anew instead of as they were sampled");
  command->add_flag(
      "--responses-incomplete-as-completed", server.responses.incomplete_as_completed,
      "Call a Responses answer that the budget cut completed, for clients that know no other end");
  command
      ->add_option(
          "--trace", server.trace_path,
          "Append prompts, answers and parser events to this file, word for word: it holds all "
          "that "
          "clients send")
      ->type_name("FILE");
  command
      ->add_option(
          "--shutdown-grace-s", options->grace_s, "Seconds that running requests get to end")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  command->callback([options] { serve(*options); });
}

}  // namespace tandem
