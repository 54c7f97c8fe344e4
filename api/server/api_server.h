#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/generation/generator.h"
#include "api/http/http_server.h"
#include "api/metrics/server_metrics.h"
#include "api/models/model_list.h"
#include "api/responses/responses_writer.h"
#include "api/stats/server_state.h"
#include "api/surface/surface.h"
#include "api/trace/trace_file.h"
#include "base/status.h"
#include "coordinator/engine/service.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "model/spec/prompt.h"

namespace tandem::api {

struct ApiServerOptions {
  HttpOptions http;
  GeneratorOptions generator;
  ServedModel model;
  std::string version;
  std::vector<std::string> api_keys;  // any of them opens the door; empty: it stands open
  std::chrono::milliseconds heartbeat_interval{5000};
  std::string trace_path;  // empty: no trace
  ResponsesWriterOptions responses;
};

class Run;

/// The HTTP surfaces over one engine.
class ApiServer final : private HttpHandler {
 public:
  /// Binds and listens. What is passed by reference outlives the server.
  /// Errors: those of HttpServer::listen.
  static Result<std::unique_ptr<ApiServer>> create(
      ApiServerOptions options, EngineService& engine, std::shared_ptr<const Tokenizer> tokenizer,
      const PromptProtocol& protocol);

  /// Serves until stop().
  void serve() { http_->serve(); }
  /// Accepts nobody any more and, after `grace`, ends the generations that are left. Threads: any.
  void stop(std::chrono::milliseconds grace);

  int port() const { return http_->port(); }
  std::string url() const { return http_->url(); }
  const ServerMetrics& metrics() const { return metrics_; }

 private:
  using Handler = void (ApiServer::*)(HttpExchange&);
  struct Route {
    std::string_view method;  // GET serves HEAD too
    std::string_view path;    // ends in '/': everything below it too
    Handler handler;
  };

  ApiServer(
      ApiServerOptions options, EngineService& engine, std::shared_ptr<const Tokenizer> tokenizer,
      const PromptProtocol& protocol);

  void handle(HttpExchange& exchange) override;
  HttpReply refuse(const ApiError& error, std::string_view path) override;

  static const std::vector<Route>& routes();
  void route(HttpExchange& exchange);
  bool is_allowed(const HttpRequest& request) const;

  void get_page(HttpExchange& exchange);
  void get_health(HttpExchange& exchange);
  void get_metrics(HttpExchange& exchange);
  void get_stats(HttpExchange& exchange);
  void get_models(HttpExchange& exchange);
  void get_model(HttpExchange& exchange);
  void get_openapi(HttpExchange& exchange);
  void post_generation(HttpExchange& exchange);
  void post_count_tokens(HttpExchange& exchange);

  /// One generation on its way to its client.
  struct Job {
    const Surface* surface = nullptr;
    std::unique_ptr<SurfaceRequest> request;
    std::string rendered_prompt;  // of a trace
    std::unique_ptr<Run> run;
    std::vector<Delta> deltas;
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  };
  void answer_whole(HttpExchange& exchange, Job& job);
  void answer_stream(HttpExchange& exchange, std::shared_ptr<Job> job);
  void stream(HttpExchange& exchange, Job& job, StreamWriter& writer);
  void note_disconnect(const HttpExchange& exchange, const Job& job);
  void note_end(const HttpExchange& exchange, const Job& job, Outcome outcome);

  ServerState state() const;
  const Surface* surface_at(std::string_view path) const;

  const ApiServerOptions options_;
  EngineService& engine_;
  ServerMetrics metrics_;
  Generator generator_;
  std::vector<std::pair<std::string, std::unique_ptr<Surface>>> surfaces_;  // by path
  std::unique_ptr<TraceFile> trace_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::unique_ptr<HttpServer> http_;
};

}  // namespace tandem::api
