#include "api/server/api_server.h"

#include <ctime>
#include <exception>

#include "api/chat/chat_surface.h"
#include "api/completions/completion_surface.h"
#include "api/generation/run.h"
#include "api/messages/messages_reader.h"
#include "api/messages/messages_surface.h"
#include "api/openapi/openapi.h"
#include "api/responses/responses_surface.h"
#include "api/server/replies.h"
#include "api/web/web_files.h"
#include "base/log.h"

namespace tandem::api {
namespace {

ApiError not_found() {
  ApiError error;
  error.http_status = 404;
  error.message = "unknown endpoint";
  return error;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  }
  return difference == 0 && !b.empty();
}

ApiResult<Json> read_body(const HttpRequest& request) {
  auto body = parse_json(request.body);
  if (body.ok()) return std::move(*body);
  ApiError error;
  error.message = str_cat("invalid JSON request: ", body.status().message());
  return error;
}

bool matches(std::string_view pattern, std::string_view path) {
  if (pattern == path) return true;
  return pattern.size() > 1 && pattern.ends_with('/') && path.starts_with(pattern);
}

}  // namespace

Result<std::unique_ptr<ApiServer>> ApiServer::create(
    ApiServerOptions options, EngineService& engine, std::shared_ptr<const Tokenizer> tokenizer,
    const PromptProtocol& protocol) {
  options.generator.keeps_rendered = !options.trace_path.empty();
  std::unique_ptr<ApiServer> server(
      new ApiServer(std::move(options), engine, std::move(tokenizer), protocol));
  if (!server->options_.trace_path.empty()) {
    TANDEM_TRY_ASSIGN(server->trace_, TraceFile::open(server->options_.trace_path));
  }
  TANDEM_TRY_ASSIGN(server->http_, HttpServer::listen(server->options_.http, *server));
  return server;
}

ApiServer::ApiServer(
    ApiServerOptions options, EngineService& engine, std::shared_ptr<const Tokenizer> tokenizer,
    const PromptProtocol& protocol)
    : options_(std::move(options)),
      engine_(engine),
      generator_(options_.generator, std::move(tokenizer), protocol, engine.context_tokens()) {
  surfaces_.emplace_back("/v1/chat/completions", std::make_unique<ChatSurface>());
  surfaces_.emplace_back("/v1/completions", std::make_unique<CompletionSurface>());
  surfaces_.emplace_back("/v1/responses", std::make_unique<ResponsesSurface>(options_.responses));
  surfaces_.emplace_back("/v1/messages", std::make_unique<MessagesSurface>());
}

const std::vector<ApiServer::Route>& ApiServer::routes() {
  static const std::vector<Route> kTable = {
      {"GET", "/", &ApiServer::get_page},
      {"GET", "/web/", &ApiServer::get_page},
      {"GET", "/health", &ApiServer::get_health},
      {"GET", "/v1/models", &ApiServer::get_models},
      {"GET", "/v1/models/", &ApiServer::get_model},
      {"GET", "/metrics", &ApiServer::get_metrics},
      {"GET", "/v1/stats", &ApiServer::get_stats},
      {"POST", "/v1/chat/completions", &ApiServer::post_generation},
      {"POST", "/v1/completions", &ApiServer::post_generation},
      {"GET", "/openapi.json", &ApiServer::get_openapi},
      {"POST", "/v1/responses", &ApiServer::post_generation},
      {"POST", "/v1/messages", &ApiServer::post_generation},
      {"POST", "/v1/messages/count_tokens", &ApiServer::post_count_tokens},
  };
  return kTable;
}

void ApiServer::stop(std::chrono::milliseconds grace) {
  http_->stop();
  engine_.stop(grace);
}

HttpReply ApiServer::refuse(const ApiError& error, std::string_view path) {
  return error_reply(error, error_style(path));
}

void ApiServer::handle(HttpExchange& exchange) {
  try {
    route(exchange);
  } catch (const std::exception& failure) {  // memory, or a mistake of ours: this request only
    log_error("api", "request_failed", {{"error", failure.what()}});
    ApiError error;
    error.http_status = 500;
    error.message = "the server could not answer this request";
    exchange.reply(error_reply(error, error_style(exchange.request().path)));
  }
}

bool ApiServer::is_allowed(const HttpRequest& request) const {
  if (options_.api_keys.empty() || request.path == "/health" ||
      find_web_file(request.path) != nullptr) {
    return true;
  }
  std::string_view key = request.header("authorization");
  if (key.starts_with("Bearer ") || key.starts_with("bearer ")) {
    key.remove_prefix(7);
  } else {
    key = request.header("x-api-key");
  }
  bool allowed = false;
  for (const std::string& known : options_.api_keys) {
    allowed |= equal_in_constant_time(key, known);
  }
  return allowed;
}

void ApiServer::route(HttpExchange& exchange) {
  const HttpRequest& request = exchange.request();
  if (request.method == "OPTIONS") {
    HttpReply reply;
    reply.status = 204;
    return exchange.reply(std::move(reply));
  }
  ApiError error = not_found();
  if (!is_allowed(request)) {
    error.http_status = 401;
    error.message = "a valid API key is needed, as a bearer token or in x-api-key";
    error.code = "invalid_api_key";
    return exchange.reply(error_reply(error, error_style(request.path)));
  }
  const std::string_view method =
      request.method == "HEAD" ? std::string_view("GET") : request.method;
  for (const Route& entry : routes()) {
    if (!matches(entry.path, request.path)) continue;
    if (entry.method == method) return (this->*entry.handler)(exchange);
    error.http_status = 405;
    error.message = str_cat(request.method, " is not allowed here");
    error.allow = entry.method == "GET" ? "GET, HEAD, OPTIONS" : str_cat(entry.method, ", OPTIONS");
  }
  exchange.reply(error_reply(error, error_style(request.path)));
}

void ApiServer::get_page(HttpExchange& exchange) {
  const WebFile* file = find_web_file(exchange.request().path);
  if (file == nullptr) return exchange.reply(error_reply(not_found(), ErrorStyle::kOpenAi));
  HttpReply reply;
  reply.content_type = file->content_type;
  reply.body = file->bytes;
  reply.headers = {
      {"Content-Security-Policy", std::string(kWebContentSecurityPolicy)},
      {"X-Content-Type-Options", "nosniff"},
      {"Cache-Control", "no-cache"}};
  exchange.reply(std::move(reply));
}

void ApiServer::get_health(HttpExchange& exchange) {
  if (!engine_.snapshot().stopping) return exchange.reply(json_reply({{"status", "ok"}}));
  HttpReply reply = json_reply({{"status", "stopping"}});
  reply.status = 503;
  reply.headers.emplace_back("Retry-After", "10");
  exchange.reply(std::move(reply));
}

ServerState ApiServer::state() const {
  const double uptime_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  return {
      metrics_,
      engine_.snapshot(),
      generator_.tool_memory().stats(),
      options_.model,
      options_.version,
      uptime_s,
      http_->num_clients(),
      http_->bodies_bytes(),
      http_->num_shed_clients(),
      http_->num_shed_bodies()};
}

void ApiServer::get_metrics(HttpExchange& exchange) {
  HttpReply reply;
  reply.content_type = "text/plain; version=0.0.4";
  reply.body = metrics_text(state());
  exchange.reply(std::move(reply));
}

void ApiServer::get_stats(HttpExchange& exchange) {
  const std::string_view accept = exchange.request().header("accept");
  if (accept.find("application/json") != std::string_view::npos) {
    return exchange.reply(json_reply(stats_json(state())));
  }
  HttpReply reply;
  reply.content_type = "text/plain; charset=utf-8";
  reply.body = stats_text(state());
  exchange.reply(std::move(reply));
}

void ApiServer::get_models(HttpExchange& exchange) {
  exchange.reply(json_reply(model_list(options_.model)));
}

void ApiServer::get_model(HttpExchange& exchange) {
  const std::string& path = exchange.request().path;
  const std::string_view name =
      std::string_view(path).substr(std::string_view("/v1/models/").size());
  if (is_model_name(options_.model, name)) {
    return exchange.reply(json_reply(model_object(options_.model)));
  }
  ApiError error;
  error.http_status = 404;
  error.message = str_cat("the model ", json_string(name), " is not loaded");
  error.code = "model_not_found";
  exchange.reply(error_reply(error, ErrorStyle::kOpenAi));
}

void ApiServer::get_openapi(HttpExchange& exchange) {
  HttpReply reply;
  reply.content_type = "application/json";
  reply.body = openapi_document();
  exchange.reply(std::move(reply));
}

void ApiServer::post_count_tokens(HttpExchange& exchange) {
  const auto fail = [&](const ApiError& error) {
    exchange.reply(error_reply(error, ErrorStyle::kAnthropic));
  };
  auto body = read_body(exchange.request());
  if (!body.ok()) return fail(body.error());
  auto request = read_messages_request(*body, MessagesUse::kCountTokens);
  if (!request.ok()) return fail(request.error());
  auto count = generator_.count_tokens(*request);
  if (!count.ok()) return fail(count.error());
  exchange.reply(json_reply({{"input_tokens", *count}}));
}

const Surface* ApiServer::surface_at(std::string_view path) const {
  for (const auto& [at, surface] : surfaces_) {
    if (at == path) return surface.get();
  }
  return nullptr;
}

void ApiServer::post_generation(HttpExchange& exchange) {
  const Surface& surface = *surface_at(exchange.request().path);
  const ErrorStyle style = surface.error_style();
  const auto fail = [&](const ApiError& error) { exchange.reply(error_reply(error, style)); };

  auto body = read_body(exchange.request());
  if (!body.ok()) return fail(body.error());
  auto read = surface.read(*body);
  if (!read.ok()) return fail(read.error());
  const auto job = std::make_shared<Job>();
  job->surface = &surface;
  job->request = std::move(*read);
  ChatRequest& chat = job->request->chat;
  if (chat.model.empty()) chat.model = options_.model.id;
  auto prepared = generator_.prepare(chat);
  if (!prepared.ok()) return fail(prepared.error());

  ++metrics_.requests_started;
  ServerMetrics::add(metrics_.surfaces, surface.kind());
  job->rendered_prompt = std::move(prepared->rendered);
  const ResponseHead head{surface.new_response_id(), std::time(nullptr), chat.model};
  auto started = Run::start(
      {generator_, engine_, metrics_, trace_ != nullptr}, chat, *prepared, head,
      surface.tool_id_prefix());
  if (!started.ok()) {
    ServerMetrics::add(metrics_.requests, Outcome::kFailed);
    return fail(started.error());
  }
  job->run = std::move(*started);
  if (chat.stream) return answer_stream(exchange, job);
  answer_whole(exchange, *job);
}

}  // namespace tandem::api
