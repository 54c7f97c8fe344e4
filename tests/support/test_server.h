#pragma once

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/server/api_server.h"
#include "base/clock.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/loaded_model.h"
#include "coordinator/engine/service.h"
#include "tests/api/scripted/scripted_stage.h"

namespace tandem::test {

/// A whole server in this process on a free loopback port, over a scripted stage. It speaks with
/// the nano model's tokenizer and prompt format.
class TestServer {
 public:
  struct Options {
    api::ApiServerOptions server;
    ScriptedStageOptions stage;
    int64_t queue_max = 256;
    Options();
  };
  explicit TestServer(std::initializer_list<ScriptLine> lines, Options options = Options())
      : TestServer(std::vector<ScriptLine>(lines), std::move(options)) {}
  explicit TestServer(std::vector<ScriptLine> lines, Options options = Options());
  ~TestServer();

  int port() const { return server_->port(); }
  std::string url() const { return server_->url(); }
  /// Answers that begin later follow these lines.
  void script(std::vector<ScriptLine> lines);
  ScriptedStage& stage() { return *stage_; }
  const LoadedModel& loaded() const { return loaded_; }
  const api::ServerMetrics& metrics() const { return server_->metrics(); }
  EngineSnapshot engine() const { return service_->snapshot(); }
  /// Waits until the server serves no more.
  void join();
  void stop(std::chrono::milliseconds grace) { server_->stop(grace); }

 private:
  SystemClock clock_;
  LoadedModel loaded_;
  ScriptedStage* stage_ = nullptr;  // owned by the pipeline
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EngineService> service_;
  std::unique_ptr<api::ApiServer> server_;
  std::thread thread_;
};

}  // namespace tandem::test
