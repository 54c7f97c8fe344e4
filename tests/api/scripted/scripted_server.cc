// A server whose model plays a script: what clients need to be tested without a large model.
//   scripted_server --model FILE --script FILE [--port N] [--sessions N] [--step-us N]
// FILE of --model gives the vocabulary and the prompt format. See script.h for the script's form.

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <thread>

#include "api/server/api_server.h"
#include "base/clock.h"
#include "base/file_stream.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/loaded_model.h"
#include "coordinator/engine/service.h"
#include "tests/api/scripted/scripted_stage.h"

namespace tandem::test {
namespace {

constexpr size_t kScriptBytesMax = 16 << 20;

struct Options {
  std::string model;
  std::string script;
  std::string model_id = "scripted";
  int port = 0;
  ScriptedStageOptions stage;
  int64_t step_us = 0;
};

Status serve(const Options& options) {
  TANDEM_TRY_ASSIGN(LoadedModel loaded, load_model(options.model));
  TANDEM_TRY_ASSIGN(const std::string text, read_text_file(options.script, kScriptBytesMax));
  TANDEM_TRY_ASSIGN(Script script, Script::from_json(text, loaded.tokenizer));
  ScriptedStageOptions stage = options.stage;
  stage.step_time = std::chrono::microseconds(options.step_us);
  std::vector<std::unique_ptr<StageExecutor>> stages;
  stages.push_back(std::make_unique<ScriptedStage>(std::move(script), stage));
  TANDEM_TRY_ASSIGN(Pipeline pipeline, Pipeline::create(std::move(stages)));

  SystemClock clock;
  Engine engine(pipeline, loaded.tokenizer, *loaded.protocol, clock, EngineOptions{});
  EngineService service(engine, kHttpQueueMax);
  api::ApiServerOptions server_options;
  server_options.http.port = options.port;
  server_options.model.id = options.model_id;
  server_options.model.name = options.model_id;
  server_options.model.context_tokens = stage.context_tokens;
  server_options.model.completion_tokens_max = stage.context_tokens;
  TANDEM_TRY_ASSIGN(
      const auto server,
      api::ApiServer::create(server_options, service, loaded.tokenizer, *loaded.protocol));
  std::printf("listening on %s\n", server->url().c_str());
  std::fflush(stdout);
  server->serve();
  return {};
}

int run(int argc, char** argv) {
  CLI::App program("A server whose model plays a script.");
  Options options;
  program.add_option("--model", options.model, "GGUF file with the vocabulary")->required();
  program.add_option("--script", options.script, "JSON array of lines")->required();
  program.add_option("--model-id", options.model_id, "The model's name for clients");
  program.add_option("--port", options.port, "0: any free one");
  program.add_option("--ctx", options.stage.context_tokens, "Context in tokens");
  program.add_option("--sessions", options.stage.num_banks, "Conversations at once");
  program.add_option("--step-us", options.step_us, "Microseconds that a step takes");
  CLI11_PARSE(program, argc, argv);
  (void)std::signal(SIGPIPE, SIG_IGN);
  const Status status = serve(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 2;
}

}  // namespace
}  // namespace tandem::test

int main(int argc, char** argv) {
  return tandem::test::run(argc, argv);
}
