#include "tests/support/test_server.h"

#include <utility>

#include "tests/support/paths.h"

namespace tandem::test {
namespace {

/// The script and the model are the test's own: what fails here is a broken test.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) std::fprintf(stderr, "test server: %s\n", result.status().message().c_str());
  TANDEM_CHECK(result.ok());
  return std::move(result).value();
}

}  // namespace

TestServer::Options::Options() {
  stage.context_tokens = 8192;
  server.http.port = 0;
  server.model = {"scripted", "Scripted model", stage.context_tokens, 4096};
  server.generator.max_tokens = 4096;
}

TestServer::TestServer(std::vector<ScriptLine> lines, Options options)
    : loaded_(must(load_model(repo_path("models/nano-q4_k.gguf")))) {
  options.server.model.context_tokens = options.stage.context_tokens;
  auto stage = std::make_unique<ScriptedStage>(
      must(Script::create(std::move(lines), loaded_.tokenizer)), options.stage);
  stage_ = stage.get();
  std::vector<std::unique_ptr<StageExecutor>> stages;
  stages.push_back(std::move(stage));
  pipeline_ = std::make_unique<Pipeline>(must(Pipeline::create(std::move(stages))));
  engine_ = std::make_unique<Engine>(
      *pipeline_, loaded_.tokenizer, *loaded_.protocol, clock_, EngineOptions{});
  service_ = std::make_unique<EngineService>(*engine_, options.queue_max);
  server_ =
      must(api::ApiServer::create(options.server, *service_, loaded_.tokenizer, *loaded_.protocol));
  thread_ = std::thread([this] { server_->serve(); });
}

void TestServer::script(std::vector<ScriptLine> lines) {
  stage_->script(must(Script::create(std::move(lines), loaded_.tokenizer)));
}

void TestServer::join() {
  if (thread_.joinable()) thread_.join();
}

TestServer::~TestServer() {
  stage_->gate().open();
  server_->stop(std::chrono::milliseconds(0));
  join();
}

}  // namespace tandem::test
