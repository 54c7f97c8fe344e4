#include "tests/api/support/nano_server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/loaded_model.h"
#include "coordinator/engine/service.h"
#include "tests/support/paths.h"

namespace tandem::test {
namespace {

constexpr int64_t kContextTokens = 8192;
constexpr int64_t kBanks = 4;
constexpr int kReadTimeoutSeconds = 300;

}  // namespace

api::Json NanoAnswer::json() const {
  api::Json parsed = api::Json::parse(body, nullptr, /*allow_exceptions=*/false);
  return parsed.is_discarded() ? api::Json() : parsed;
}

struct NanoServer::Parts {
  LoadedModel loaded;
  SystemClock clock;
  ThreadPool pool{2};
  std::optional<Pipeline> pipeline;
  std::optional<Engine> engine;
  std::optional<EngineService> service;
  std::unique_ptr<api::ApiServer> server;
  std::thread thread;
};

NanoServer::NanoServer(api::ApiServerOptions options) : parts_(std::make_unique<Parts>()) {
  auto loaded = load_model(repo_path("models/nano-q4_k.gguf"));
  EXPECT_TRUE(loaded.ok());
  if (!loaded.ok()) return;
  parts_->loaded = std::move(*loaded);
  LocalStageOptions stage;
  stage.num_banks = kBanks;
  stage.context_tokens = kContextTokens;
  auto pipeline = make_local_pipeline(parts_->loaded, stage, parts_->pool);
  EXPECT_TRUE(pipeline.ok());
  if (!pipeline.ok()) return;
  parts_->pipeline.emplace(std::move(*pipeline));
  parts_->engine.emplace(
      *parts_->pipeline, parts_->loaded.tokenizer, *parts_->loaded.protocol, parts_->clock,
      EngineOptions{});
  parts_->service.emplace(*parts_->engine, kHttpQueueMax);
  options.http.port = 0;
  options.model.id = "nano";
  options.model.context_tokens = kContextTokens;
  options.model.completion_tokens_max = kContextTokens;
  auto server = api::ApiServer::create(
      std::move(options), *parts_->service, parts_->loaded.tokenizer, *parts_->loaded.protocol);
  EXPECT_TRUE(server.ok());
  if (!server.ok()) return;
  parts_->server = std::move(*server);
  parts_->thread = std::thread([this] { parts_->server->serve(); });
}

NanoServer::~NanoServer() {
  if (parts_->server == nullptr) return;
  parts_->server->stop(std::chrono::milliseconds(0));
  parts_->thread.join();
}

NanoAnswer NanoServer::post_text(const std::string& path, const std::string& body) const {
  NanoAnswer out;
  if (parts_->server == nullptr) return out;
  httplib::Client client("127.0.0.1", parts_->server->port());
  client.set_read_timeout(kReadTimeoutSeconds);
  const auto result = client.Post(path.c_str(), body, "application/json");
  EXPECT_TRUE(result) << path;
  if (!result) return out;
  out.status = result->status;
  out.body = result->body;
  out.content_type = result->get_header_value("Content-Type");
  return out;
}

NanoAnswer NanoServer::post(const std::string& path, const api::Json& body) const {
  return post_text(path, body.dump());
}

NanoAnswer NanoServer::get(const std::string& path) const {
  NanoAnswer out;
  if (parts_->server == nullptr) return out;
  httplib::Client client("127.0.0.1", parts_->server->port());
  const auto result = client.Get(path.c_str(), {{"Accept", "application/json"}});
  EXPECT_TRUE(result) << path;
  if (!result) return out;
  out.status = result->status;
  out.body = result->body;
  out.content_type = result->get_header_value("Content-Type");
  return out;
}

}  // namespace tandem::test
