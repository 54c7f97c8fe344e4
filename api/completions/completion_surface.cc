#include "api/completions/completion_surface.h"

#include <string_view>

#include "api/completions/completion_writer.h"
#include "api/generation/ids.h"
#include "api/json/field_reader.h"
#include "api/surface/common_fields.h"
#include "base/limits.h"

namespace tandem::api {
namespace {

constexpr int64_t kCompletionLogprobsMax = 5;
constexpr const char* kDefaultSystem = "You are a helpful assistant";

class CompletionSurfaceRequest final : public SurfaceRequest {
 public:
  explicit CompletionSurfaceRequest(ChatRequest request) { chat = std::move(request); }
  Json write(const Completion& completion) const override {
    return completion_response(chat, completion);
  }
  std::unique_ptr<StreamEncoder> encoder(const ResponseHead& head) const override {
    return completion_encoder(chat, head);
  }
};

void read_prompt(FieldReader& body, ChatRequest& out) {
  const Json* prompt = body.find("prompt");
  if (prompt == nullptr) {
    ApiError error;
    error.message = "missing prompt";
    error.param = "prompt";
    return body.errors().add(std::move(error));
  }
  if (prompt->is_array()) {
    if (prompt->size() != 1) return body.fail("prompt", "must be one string");
    prompt = &(*prompt)[0];
  }
  if (!prompt->is_string()) return body.fail("prompt", "must be a string");
  Message system;
  system.role = Role::kSystem;
  system.content = kDefaultSystem;
  Message user;
  user.content = prompt->get<std::string>();
  out.messages = {std::move(system), std::move(user)};
  out.prompt_param = "prompt";
}

void refuse_unsupported(FieldReader& body) {
  bool echo = false;
  body.boolean("echo", echo);
  if (echo) body.fail("echo", "is not supported");
  int64_t best_of = 1;
  body.integer("best_of", best_of, 0, INT64_MAX);
  if (best_of != 1) body.fail("best_of", "is not supported");
  std::string suffix;
  body.text("suffix", suffix);
  if (!suffix.empty()) body.fail("suffix", "is not supported");
  const Json* tools = body.array("tools");
  if (tools != nullptr && !tools->empty()) {
    body.fail("tools", "are not supported here; use /v1/chat/completions");
  }
}

void read_logprobs(FieldReader& body, SamplingParams& out) {
  if (!body.has("logprobs")) return;
  body.integer("logprobs", out.num_logprobs, 0, kCompletionLogprobsMax);
  out.logprobs = true;
}

}  // namespace

std::string CompletionSurface::new_response_id() const {
  return random_id("cmpl-", 24);
}

ApiResult<std::unique_ptr<SurfaceRequest>> CompletionSurface::read(const Json& json) const {
  RequestErrors errors;
  FieldReader body(json, "", errors);
  ChatRequest out;
  if (errors.any()) return errors.first();
  read_model(body, out);
  read_prompt(body, out);
  refuse_unsupported(body);
  read_sampling(body, out.sampling);
  read_stop(body, "stop", out.stop);
  read_budget(body, {"max_tokens"}, out.max_tokens);
  read_thinking(body, out.effort);
  read_format(body, "response_format", out);
  read_logprobs(body, out.sampling);
  body.integer("n", out.num_choices, 1, kChoicesMax);
  body.boolean("stream", out.stream);
  if (const Json* options = body.object("stream_options")) {
    FieldReader fields(*options, "stream_options", errors);
    fields.boolean("include_usage", out.include_usage);
  }
  if (errors.any()) return errors.first();
  return std::unique_ptr<SurfaceRequest>(
      std::make_unique<CompletionSurfaceRequest>(std::move(out)));
}

}  // namespace tandem::api
