#include "api/chat/chat_writer.h"

#include "api/surface/common_json.h"
#include "api/surface/openai_encoder.h"

namespace tandem::api {
namespace {

Json logprobs_object(std::span<const TokenInfo> tokens) {
  Json out;
  out["content"] = logprobs_list(tokens);
  out["refusal"] = nullptr;
  return out;
}

class ChatEncoder final : public OpenAiEncoder {
 public:
  ChatEncoder(const ChatRequest& request, const ResponseHead& head)
      : OpenAiEncoder(request, head, "chat.completion.chunk"),
        with_ids_(request.return_token_ids),
        with_logprobs_(request.sampling.logprobs),
        num_choices_(static_cast<int>(request.num_choices)) {}

  void begin(std::string& out) override {
    for (int i = 0; i < num_choices_; ++i) {
      write_delta(i, {{"role", "assistant"}, {"content", ""}}, nullptr, {}, out);
    }
  }

  void delta(const Delta& delta, std::string& out) override {
    Json body = Json::object();
    switch (delta.kind) {
      case Delta::Kind::kProgress: return write_progress(delta, out);
      case Delta::Kind::kReasoning: body["reasoning_content"] = delta.text; break;
      case Delta::Kind::kContent: body["content"] = delta.text; break;
      case Delta::Kind::kToolBegin:
        body["tool_calls"] = Json::array(
            {{{"index", delta.tool_idx},
              {"id", delta.tool_id},
              {"type", "function"},
              {"function", {{"name", delta.text}, {"arguments", ""}}}}});
        break;
      case Delta::Kind::kToolArguments:
        body["tool_calls"] =
            Json::array({{{"index", delta.tool_idx}, {"function", {{"arguments", delta.text}}}}});
        break;
      case Delta::Kind::kToolEnd: return;
      case Delta::Kind::kFinish:
        return write_delta(
            delta.choice_idx, Json::object(), openai_finish_reason(delta.finish), {}, out);
    }
    const bool is_content = delta.kind == Delta::Kind::kContent;
    write_delta(
        delta.choice_idx, std::move(body), nullptr, delta.tokens, out,
        with_logprobs_ && is_content);
  }

 private:
  void write_delta(
      int choice_idx, Json body, const char* finish_reason, std::span<const TokenInfo> tokens,
      std::string& out, bool with_logprobs = false) {
    Json choice;
    choice["index"] = choice_idx;
    choice["delta"] = std::move(body);
    if (with_logprobs) choice["logprobs"] = logprobs_object(tokens);
    choice["finish_reason"] = finish_reason == nullptr ? Json(nullptr) : Json(finish_reason);
    if (with_ids_) choice["token_ids"] = token_ids(tokens);
    write_choice(std::move(choice), out);
  }

  void write_progress(const Delta& delta, std::string& out) {
    Json chunk = chunk_head();
    chunk["choices"] =
        Json::array({{{"index", 0}, {"delta", Json::object()}, {"finish_reason", nullptr}}});
    chunk["prompt_progress"] = {
        {"total", delta.prompt_total},
        {"cache", delta.prompt_cached},
        {"processed", delta.prompt_done},
        {"time_ms", static_cast<int64_t>(delta.prompt_seconds * 1000)}};
    append_data(chunk, out);
  }

  const bool with_ids_;
  const bool with_logprobs_;
  const int num_choices_;
};

Json message_json(const Answer& answer) {
  Json out;
  out["role"] = "assistant";
  out["content"] = answer.content;
  if (!answer.reasoning.empty()) out["reasoning_content"] = answer.reasoning;
  for (const AnswerCall& call : answer.calls) {
    out["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return out;
}

}  // namespace

Json chat_response(const ChatRequest& request, const Completion& completion) {
  Json out;
  out["id"] = completion.head.id;
  out["object"] = "chat.completion";
  out["created"] = completion.head.created_s;
  out["model"] = completion.head.model;
  Json& choices = out["choices"] = Json::array();
  for (size_t i = 0; i < completion.choices.size(); ++i) {
    const Answer& answer = completion.choices[i];
    Json choice;
    choice["index"] = i;
    choice["message"] = message_json(answer);
    choice["logprobs"] =
        request.sampling.logprobs ? logprobs_object(answer.content_tokens) : Json(nullptr);
    choice["finish_reason"] = openai_finish_reason(answer.finish);
    if (request.return_token_ids) choice["token_ids"] = token_ids(answer.tokens);
    choices.push_back(std::move(choice));
  }
  if (request.return_token_ids) out["prompt_token_ids"] = completion.prompt_token_ids;
  out["usage"] = openai_usage(completion.usage);
  out["timings"] = timings_json(completion.timings);
  return out;
}

std::unique_ptr<StreamEncoder> chat_encoder(const ChatRequest& request, const ResponseHead& head) {
  return std::make_unique<ChatEncoder>(request, head);
}

}  // namespace tandem::api
