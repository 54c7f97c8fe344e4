#include "api/chat/chat_writer.h"

#include "api/surface/common_json.h"

namespace tandem::api {
namespace {

Json logprobs_object(std::span<const TokenInfo> tokens) {
  Json out;
  out["content"] = logprobs_list(tokens);
  out["refusal"] = nullptr;
  return out;
}

class ChatEncoder final : public StreamEncoder {
 public:
  ChatEncoder(const ChatRequest& request, const ResponseHead& head)
      : with_ids_(request.return_token_ids),
        with_logprobs_(request.sampling.logprobs),
        with_usage_(request.include_usage),
        num_choices_(static_cast<int>(request.num_choices)) {
    chunk_["id"] = head.id;
    chunk_["object"] = "chat.completion.chunk";
    chunk_["created"] = head.created_s;
    chunk_["model"] = head.model;
  }

  void begin(std::string& out) override {
    for (int i = 0; i < num_choices_; ++i) {
      write_choice(i, {{"role", "assistant"}, {"content", ""}}, nullptr, {}, out);
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
        return write_choice(
            delta.choice_idx, Json::object(), openai_finish_reason(delta.finish), {}, out);
    }
    const bool is_content = delta.kind == Delta::Kind::kContent;
    write_choice(
        delta.choice_idx, std::move(body), nullptr, delta.tokens, out,
        with_logprobs_ && is_content);
  }

  void end(const Completion& completion, std::string& out) override {
    if (with_usage_) {
      Json chunk = chunk_;
      chunk["choices"] = Json::array();
      chunk["usage"] = openai_usage(completion.usage);
      chunk["timings"] = timings_json(completion.timings);
      append_data(chunk, out);
    }
    out += "data: [DONE]\n\n";
  }

  void error(const ApiError& error, std::string& out) override {
    out += "event: error\ndata: ";
    out += error_body(error, ErrorStyle::kOpenAi);
    out += "\n\n";
  }

  void heartbeat(std::string& out) override { out += ": prefill\n\n"; }

 private:
  void write_choice(
      int choice_idx, Json body, const char* finish_reason, std::span<const TokenInfo> tokens,
      std::string& out, bool with_logprobs = false) {
    Json choice;
    choice["index"] = choice_idx;
    choice["delta"] = std::move(body);
    if (with_logprobs) choice["logprobs"] = logprobs_object(tokens);
    choice["finish_reason"] = finish_reason == nullptr ? Json(nullptr) : Json(finish_reason);
    if (with_ids_) choice["token_ids"] = token_ids(tokens);
    Json chunk = chunk_;
    chunk["choices"] = Json::array({std::move(choice)});
    append_data(chunk, out);
  }

  void write_progress(const Delta& delta, std::string& out) {
    Json chunk = chunk_;
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
  const bool with_usage_;
  const int num_choices_;
  Json chunk_;  // what every chunk starts with
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
