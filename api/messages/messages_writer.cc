#include "api/messages/messages_writer.h"

#include "api/surface/common_json.h"

namespace tandem::api {
namespace {

const char* stop_reason(const Answer& answer) {
  switch (answer.finish) {
    case FinishReason::kToolCalls: return "tool_use";
    case FinishReason::kLength: return "max_tokens";
    case FinishReason::kStop:
    case FinishReason::kCancelled:
    case FinishReason::kError: break;
  }
  return answer.stop_string.has_value() ? "stop_sequence" : "end_turn";
}

Json stop_sequence(const Answer& answer) {
  const bool is_told = answer.finish == FinishReason::kStop && answer.stop_string.has_value();
  return is_told ? Json(*answer.stop_string) : Json(nullptr);
}

Json usage_json(int64_t prompt_tokens, int64_t cached_tokens, int64_t completion_tokens) {
  Json out;
  out["input_tokens"] = prompt_tokens - cached_tokens;
  out["cache_creation_input_tokens"] = 0;
  out["cache_read_input_tokens"] = cached_tokens;
  out["output_tokens"] = completion_tokens;
  return out;
}

Json usage_json(const Usage& usage) {
  return usage_json(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens);
}

/// Clients send it back with the block and need it to be there; it carries nothing.
const std::string& signature(const ResponseHead& head) {
  return head.id;
}

/// The arguments as an object. The parser of the model's output writes nothing else, but keys may
/// repeat there, and the last one counts.
Json call_input(const std::string& arguments) {
  Json parsed = Json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? std::move(parsed) : Json::object();
}

class MessagesEncoder final : public StreamEncoder {
 public:
  explicit MessagesEncoder(const ResponseHead& head) : head_(head) {}

  void begin(std::string&) override {}

  void delta(const Delta& delta, std::string& out) override {
    if (delta.kind == Delta::Kind::kFinish) return;  // end() knows more
    start(delta.prompt_total, delta.prompt_cached, out);
    switch (delta.kind) {
      case Delta::Kind::kProgress:
      case Delta::Kind::kFinish: return;
      case Delta::Kind::kReasoning:
        if (open_ != Block::kThinking) {
          open(Block::kThinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}, out);
        }
        return write_delta("thinking_delta", "thinking", delta.text, out);
      case Delta::Kind::kContent:
        if (open_ != Block::kText) open(Block::kText, {{"type", "text"}, {"text", ""}}, out);
        return write_delta("text_delta", "text", delta.text, out);
      case Delta::Kind::kToolBegin:
        return open(
            Block::kTool,
            {{"type", "tool_use"},
             {"id", delta.tool_id},
             {"name", delta.text},
             {"input", Json::object()}},
            out);
      case Delta::Kind::kToolArguments:
        return write_delta("input_json_delta", "partial_json", delta.text, out);
      case Delta::Kind::kToolEnd: return close(out);
    }
  }

  void end(const Completion& completion, std::string& out) override {
    start(completion.usage.prompt_tokens, completion.usage.cached_tokens, out);
    close(out);
    if (!has_answer_) {
      open(Block::kText, {{"type", "text"}, {"text", ""}}, out);
      close(out);
    }
    static const Answer kNothing;
    const Answer& answer = completion.choices.empty() ? kNothing : completion.choices[0];
    Json payload = event("message_delta");
    payload["delta"] = {
        {"stop_reason", stop_reason(answer)}, {"stop_sequence", stop_sequence(answer)}};
    payload["usage"] = usage_json(completion.usage);
    payload["timings"] = timings_json(completion.timings);
    write(payload, out);
    write(event("message_stop"), out);
  }

  void error(const ApiError& error, std::string& out) override {
    out += "event: error\ndata: ";
    out += error_body(error, ErrorStyle::kAnthropic);
    out += "\n\n";
  }

  void heartbeat(std::string& out) override { write(event("ping"), out); }

 private:
  enum class Block { kNone, kThinking, kText, kTool };

  static Json event(const char* type) { return {{"type", type}}; }

  static void write(const Json& payload, std::string& out) {
    append_event(payload["type"].get_ref<const std::string&>(), payload, out);
  }

  void start(int64_t prompt_tokens, int64_t cached_tokens, std::string& out) {
    if (has_started_) return;
    has_started_ = true;
    Json payload = event("message_start");
    payload["message"] = {
        {"id", head_.id},           {"type", "message"},
        {"role", "assistant"},      {"model", head_.model},
        {"content", Json::array()}, {"stop_reason", nullptr},
        {"stop_sequence", nullptr}, {"usage", usage_json(prompt_tokens, cached_tokens, 0)}};
    write(payload, out);
  }

  void open(Block block, Json content, std::string& out) {
    close(out);
    open_ = block;
    has_answer_ |= block != Block::kThinking;
    Json payload = event("content_block_start");
    payload["index"] = block_idx_;
    payload["content_block"] = std::move(content);
    write(payload, out);
  }

  void close(std::string& out) {
    if (open_ == Block::kNone) return;
    if (open_ == Block::kThinking)
      write_delta("signature_delta", "signature", signature(head_), out);
    open_ = Block::kNone;
    Json payload = event("content_block_stop");
    payload["index"] = block_idx_++;
    write(payload, out);
  }

  void write_delta(const char* type, const char* field, const std::string& text, std::string& out) {
    Json payload = event("content_block_delta");
    payload["index"] = block_idx_;
    payload["delta"] = {{"type", type}, {field, text}};
    write(payload, out);
  }

  const ResponseHead head_;
  bool has_started_ = false;
  bool has_answer_ = false;  // a block after the reasoning
  Block open_ = Block::kNone;
  int block_idx_ = 0;
};

}  // namespace

Json messages_response(const Completion& completion) {
  static const Answer kNothing;
  const Answer& answer = completion.choices.empty() ? kNothing : completion.choices[0];
  Json content = Json::array();
  if (!answer.reasoning.empty()) {
    content.push_back(
        {{"type", "thinking"},
         {"thinking", answer.reasoning},
         {"signature", signature(completion.head)}});
  }
  if (!answer.content.empty() || answer.calls.empty()) {
    content.push_back({{"type", "text"}, {"text", answer.content}});
  }
  for (const AnswerCall& call : answer.calls) {
    content.push_back(
        {{"type", "tool_use"},
         {"id", call.id},
         {"name", call.name},
         {"input", call_input(call.arguments)}});
  }
  Json out;
  out["id"] = completion.head.id;
  out["type"] = "message";
  out["role"] = "assistant";
  out["model"] = completion.head.model;
  out["content"] = std::move(content);
  out["stop_reason"] = stop_reason(answer);
  out["stop_sequence"] = stop_sequence(answer);
  out["usage"] = usage_json(completion.usage);
  out["timings"] = timings_json(completion.timings);
  return out;
}

std::unique_ptr<StreamEncoder> messages_encoder(const ResponseHead& head) {
  return std::make_unique<MessagesEncoder>(head);
}

}  // namespace tandem::api
