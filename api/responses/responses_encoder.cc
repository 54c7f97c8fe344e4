#include "api/responses/responses_encoder.h"

#include <utility>

#include "api/generation/ids.h"
#include "api/responses/custom_input.h"
#include "api/surface/common_json.h"

namespace tandem::api {
namespace {

constexpr size_t kIdHex = 24;

const char* failure_code(const ApiError& error) {
  if (error.code == "context_length_exceeded") return "context_length_exceeded";
  if (error.http_status == 429 || error.http_status == 503) return "rate_limit_exceeded";
  return "server_error";
}

class ResponsesEncoder final : public StreamEncoder {
 public:
  ResponsesEncoder(
      const ResponsesRequest& request, const ResponsesWriterOptions& options,
      const ResponseHead& head)
      : request_(request), options_(options), head_(head) {}

  void begin(std::string& out) override {
    write_envelope("response.created", out);
    write_envelope("response.in_progress", out);
  }

  void heartbeat(std::string& out) override { write_envelope("response.in_progress", out); }

  void delta(const Delta& delta, std::string& out) override {
    switch (delta.kind) {
      case Delta::Kind::kProgress:
      case Delta::Kind::kToolEnd: return;  // see the header
      case Delta::Kind::kReasoning: return add_reasoning(delta, out);
      case Delta::Kind::kContent: return add_content(delta, out);
      case Delta::Kind::kToolBegin: return begin_call(delta, out);
      case Delta::Kind::kToolArguments: return add_arguments(delta, out);
      case Delta::Kind::kFinish: return finish(delta.finish, out);
    }
  }

  void end(const Completion& completion, std::string& out) override {
    Json response = response_object(request_, head_, "completed", std::move(output_));
    set_response_end(options_, completion, response);
    const bool is_incomplete = response["status"] == "incomplete";
    Json payload = event(is_incomplete ? "response.incomplete" : "response.completed");
    payload["response"] = std::move(response);
    write(payload, out);
  }

  void error(const ApiError& error, std::string& out) override {
    std::string message = error.message;
    if (error.retry_after_s.has_value()) {
      message += str_cat("; try again in ", *error.retry_after_s, "s");
    }
    Json payload = event("response.failed");
    Json& response = payload["response"] =
        response_object(request_, head_, "failed", std::move(output_));
    response["error"] = {{"code", failure_code(error)}, {"message", message}};
    write(payload, out);
  }

 private:
  enum class Item { kNone, kReasoning, kMessage, kCall };

  Json event(const char* type) {
    Json out;
    out["type"] = type;
    out["sequence_number"] = sequence_number_++;
    return out;
  }

  /// An event of the open item.
  Json item_event(const char* type) {
    Json out = event(type);
    out["item_id"] = item_id_;
    out["output_index"] = output_.size();
    return out;
  }

  static void write(const Json& payload, std::string& out) {
    append_event(payload["type"].get_ref<const std::string&>(), payload, out);
  }

  void write_envelope(const char* type, std::string& out) {
    Json payload = event(type);
    payload["response"] = response_object(request_, head_, "in_progress", Json::array());
    write(payload, out);
  }

  void write_item(const char* type, const Json& item, std::string& out) {
    Json payload = event(type);
    payload["output_index"] = output_.size();
    payload["item"] = item;
    write(payload, out);
  }

  void open(Item kind, const char* id_prefix) {
    open_ = kind;
    item_id_ = random_id(id_prefix, kIdHex);
    text_.clear();
    logprobs_ = Json::array();
  }

  /// Declares the open item done.
  void done(Json item, std::string& out) {
    write_item("response.output_item.done", item, out);
    output_.push_back(std::move(item));
    open_ = Item::kNone;
  }

  void close(bool is_cut, std::string& out) {
    switch (std::exchange(open_, Item::kNone)) {
      case Item::kNone: return;
      case Item::kReasoning: return close_reasoning(is_cut, out);
      case Item::kMessage: return close_message(out);
      case Item::kCall: return close_call(out);
    }
  }

  void add_reasoning(const Delta& delta, std::string& out) {
    if (!writes_reasoning(request_)) return;
    if (open_ != Item::kReasoning) {
      close(/*is_cut=*/false, out);
      open(Item::kReasoning, "rs_");
      write_item(
          "response.output_item.added",
          {{"id", item_id_},
           {"type", "reasoning"},
           {"status", "in_progress"},
           {"summary", Json::array()}},
          out);
      if (request_.shows_reasoning)
        write_summary_part("response.reasoning_summary_part.added", out);
    }
    text_ += delta.text;
    if (!request_.shows_reasoning) return;
    Json payload = item_event("response.reasoning_summary_text.delta");
    payload["summary_index"] = 0;
    payload["delta"] = delta.text;
    write(payload, out);
  }

  void write_summary_part(const char* type, std::string& out) {
    Json payload = item_event(type);
    payload["summary_index"] = 0;
    payload["part"] = {{"type", "summary_text"}, {"text", text_}};
    write(payload, out);
  }

  void close_reasoning(bool is_cut, std::string& out) {
    if (request_.shows_reasoning) {
      Json payload = item_event("response.reasoning_summary_text.done");
      payload["summary_index"] = 0;
      payload["text"] = text_;
      write(payload, out);
      write_summary_part("response.reasoning_summary_part.done", out);
    }
    done(reasoning_item(request_, item_id_, is_cut ? "incomplete" : "completed", text_), out);
  }

  void add_content(const Delta& delta, std::string& out) {
    if (open_ != Item::kMessage) {
      close(/*is_cut=*/false, out);
      open(Item::kMessage, "msg_");
      write_item(
          "response.output_item.added",
          {{"id", item_id_},
           {"type", "message"},
           {"status", "in_progress"},
           {"role", "assistant"},
           {"content", Json::array()}},
          out);
      Json payload = item_event("response.content_part.added");
      payload["content_index"] = 0;
      payload["part"] = text_part("", Json::array());
      write(payload, out);
    }
    text_ += delta.text;
    Json logprobs = logprobs_list(delta.tokens);
    logprobs_.insert(logprobs_.end(), logprobs.begin(), logprobs.end());
    Json payload = item_event("response.output_text.delta");
    payload["content_index"] = 0;
    payload["delta"] = delta.text;
    payload["logprobs"] = std::move(logprobs);
    write(payload, out);
  }

  void close_message(std::string& out) {
    Json payload = item_event("response.output_text.done");
    payload["content_index"] = 0;
    payload["text"] = text_;
    payload["logprobs"] = logprobs_;
    write(payload, out);
    payload = item_event("response.content_part.done");
    payload["content_index"] = 0;
    payload["part"] = text_part(text_, logprobs_);
    write(payload, out);
    done(message_item(item_id_, "completed", text_, std::move(logprobs_)), out);
  }

  void begin_call(const Delta& delta, std::string& out) {
    close(/*is_cut=*/false, out);
    tool_ = request_.tools.find(delta.text);
    open(Item::kCall, call_item_prefix(tool_.form));
    call_ = {delta.tool_id, delta.text, {}};
    custom_ = {};
    write_item("response.output_item.added", call_item(tool_, item_id_, call_, "in_progress"), out);
  }

  void add_arguments(const Delta& delta, std::string& out) {
    if (open_ != Item::kCall) return;
    call_.arguments += delta.text;
    if (tool_.form == ToolForm::kFunction) {
      Json payload = item_event("response.function_call_arguments.delta");
      payload["delta"] = delta.text;
      write(payload, out);
    } else if (tool_.form == ToolForm::kCustom) {
      std::string more;
      custom_.push(delta.text, more);
      write_custom(more, out);
    }
  }

  void write_custom(const std::string& more, std::string& out) {
    if (more.empty()) return;
    text_ += more;
    Json payload = item_event("response.custom_tool_call_input.delta");
    payload["delta"] = more;
    write(payload, out);
  }

  void close_call(std::string& out) {
    if (tool_.form == ToolForm::kFunction) {
      Json payload = item_event("response.function_call_arguments.done");
      payload["name"] = tool_.name;
      payload["arguments"] = call_.arguments;
      write(payload, out);
    } else if (tool_.form == ToolForm::kCustom) {
      std::string rest;
      custom_.finish(rest);
      write_custom(rest, out);
      Json payload = item_event("response.custom_tool_call_input.done");
      payload["input"] = text_;
      write(payload, out);
    }
    done(call_item(tool_, item_id_, call_, "completed"), out);
  }

  void finish(FinishReason reason, std::string& out) {
    const bool is_cut = reason == FinishReason::kLength;
    if (open_ == Item::kCall && reason != FinishReason::kToolCalls) return;
    close(is_cut, out);
  }

  const ResponsesRequest& request_;
  const ResponsesWriterOptions options_;
  const ResponseHead head_;
  int64_t sequence_number_ = 0;
  Json output_ = Json::array();  // items that are done
  Item open_ = Item::kNone;
  std::string item_id_;
  std::string text_;  // of the open item
  Json logprobs_ = Json::array();
  ResponsesTool tool_;  // of the open call
  AnswerCall call_;
  CustomInput custom_;
};

}  // namespace

std::unique_ptr<StreamEncoder> responses_encoder(
    const ResponsesRequest& request, const ResponsesWriterOptions& options,
    const ResponseHead& head) {
  return std::make_unique<ResponsesEncoder>(request, options, head);
}

}  // namespace tandem::api
