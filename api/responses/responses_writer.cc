#include "api/responses/responses_writer.h"

#include "api/generation/ids.h"
#include "api/responses/sealed_reasoning.h"
#include "api/surface/common_json.h"

namespace tandem::api {
namespace {

constexpr size_t kIdHex = 24;

Json usage_json(const Usage& usage) {
  Json out;
  out["input_tokens"] = usage.prompt_tokens;
  out["input_tokens_details"] = {
      {"cached_tokens", usage.cached_tokens},
      {"cache_write_tokens", usage.prompt_tokens - usage.cached_tokens}};
  out["output_tokens"] = usage.completion_tokens;
  out["output_tokens_details"] = {{"reasoning_tokens", usage.reasoning_tokens}};
  out["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  return out;
}

bool is_cut(const Completion& completion) {
  return !completion.choices.empty() && completion.choices[0].finish == FinishReason::kLength;
}

}  // namespace

bool writes_reasoning(const ResponsesRequest& request) {
  return request.shows_reasoning || request.seals_reasoning;
}

Json response_object(
    const ResponsesRequest& request, const ResponseHead& head, const char* status, Json output) {
  Json out;
  out["id"] = head.id;
  out["object"] = "response";
  out["created_at"] = head.created_s;
  out["status"] = status;
  out["error"] = nullptr;
  out["incomplete_details"] = nullptr;
  out["model"] = head.model;
  out["output"] = std::move(output);
  for (const auto& [key, value] : request.echo.get_ref<const Json::object_t&>()) out[key] = value;
  out["usage"] = nullptr;
  return out;
}

void set_response_end(
    const ResponsesWriterOptions& options, const Completion& completion, Json& response) {
  const bool is_incomplete = is_cut(completion);
  const bool is_told = is_incomplete && !options.incomplete_as_completed;
  response["status"] = is_told ? "incomplete" : "completed";
  if (is_incomplete) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
  response["usage"] = usage_json(completion.usage);
  response["timings"] = timings_json(completion.timings);
}

Json text_part(const std::string& text, Json logprobs) {
  return {
      {"type", "output_text"},
      {"text", text},
      {"annotations", Json::array()},
      {"logprobs", std::move(logprobs)}};
}

Json message_item(
    const std::string& item_id, const char* status, const std::string& text, Json logprobs) {
  Json out;
  out["id"] = item_id;
  out["type"] = "message";
  out["status"] = status;
  out["role"] = "assistant";
  out["content"] = Json::array({text_part(text, std::move(logprobs))});
  return out;
}

Json reasoning_item(
    const ResponsesRequest& request, const std::string& item_id, const char* status,
    const std::string& text) {
  Json out;
  out["id"] = item_id;
  out["type"] = "reasoning";
  out["status"] = status;
  out["summary"] = Json::array();
  if (request.shows_reasoning && !text.empty()) {
    out["summary"].push_back({{"type", "summary_text"}, {"text", text}});
  }
  if (request.seals_reasoning) out["encrypted_content"] = seal_reasoning(text);
  return out;
}

Json responses_response(
    const ResponsesRequest& request, const ResponsesWriterOptions& options,
    const Completion& completion) {
  Json output = Json::array();
  if (!completion.choices.empty()) {
    const Answer& answer = completion.choices[0];
    const bool is_open = is_cut(completion) && answer.content.empty() && answer.calls.empty();
    if (writes_reasoning(request) && !answer.reasoning.empty()) {
      output.push_back(reasoning_item(
          request, random_id("rs_", kIdHex), is_open ? "incomplete" : "completed",
          answer.reasoning));
    }
    if (!answer.content.empty()) {
      output.push_back(message_item(
          random_id("msg_", kIdHex), "completed", answer.content,
          logprobs_list(answer.content_tokens)));
    }
    for (const AnswerCall& call : answer.calls) {
      const ResponsesTool tool = request.tools.find(call.name);
      output.push_back(
          call_item(tool, random_id(call_item_prefix(tool.form), kIdHex), call, "completed"));
    }
  }
  Json out = response_object(request, completion.head, "completed", std::move(output));
  set_response_end(options, completion, out);
  return out;
}

}  // namespace tandem::api
