#include "api/chat/chat_reader.h"

#include <string_view>

#include "api/json/field_reader.h"
#include "api/surface/common_fields.h"
#include "base/limits.h"

namespace tandem::api {
namespace {

/// A string, or an array of strings and text parts, joined.
std::string read_content(FieldReader& message) {
  const Json* content = message.find("content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) {
    message.fail("content", "must be a string or an array of parts");
    return {};
  }
  std::string out;
  const std::string path = message.path("content");
  for (size_t i = 0; i < content->size(); ++i) {
    const Json& item = (*content)[i];
    if (item.is_string()) {
      out += item.get_ref<const std::string&>();
      continue;
    }
    FieldReader part(item, item_path(path, i), message.errors());
    const std::string type = part.required_text("type");
    std::string text;
    if (type == "text" || type == "input_text" || type == "output_text") {
      if (!part.has("text")) part.fail("text", "is missing");
      part.text("text", text);
    } else if (type == "refusal") {
      part.text("refusal", text);
    } else {
      refuse_part(message.errors(), item_path(path, i), type);
    }
    out += text;
  }
  return out;
}

void read_calls(FieldReader& message, Message& out) {
  const Json* calls = message.array("tool_calls");
  if (calls == nullptr) return;
  if (out.role != Role::kAssistant && !calls->empty()) {
    return message.fail("tool_calls", "belongs to assistant messages");
  }
  for (size_t i = 0; i < calls->size(); ++i) {
    FieldReader call((*calls)[i], item_path(message.path("tool_calls"), i), message.errors());
    ToolCall made;
    call.text("id", made.id);
    const Json* function = call.object("function");
    if (function == nullptr) {
      call.fail("function", "is missing");
      return;
    }
    FieldReader fields(*function, call.path("function"), message.errors());
    made.name = fields.required_text("name");
    made.arguments = arguments_text(fields, "arguments");
    out.tool_calls.push_back(std::move(made));
  }
}

bool read_role(FieldReader& message, Role& out) {
  const std::string role = message.required_text("role");
  if (role == "system" || role == "developer") {
    out = Role::kSystem;
  } else if (role == "user") {
    out = Role::kUser;
  } else if (role == "assistant") {
    out = Role::kAssistant;
  } else if (role == "tool" || role == "function") {
    out = Role::kTool;
  } else {
    message.fail("role", "must be system, developer, user, assistant, tool or function");
    return false;
  }
  return true;
}

void read_messages(FieldReader& body, ChatRequest& out) {
  const Json* messages = body.array("messages");
  if (messages == nullptr) {
    ApiError error;
    error.message = "missing messages";
    error.param = "messages";
    return body.errors().add(std::move(error));
  }
  if (messages->empty()) return body.fail("messages", "must not be empty");
  if (static_cast<int64_t>(messages->size()) > kMessagesMax) {
    return body.fail("messages", str_cat("has more than ", kMessagesMax, " items"));
  }
  for (size_t i = 0; i < messages->size() && !body.errors().any(); ++i) {
    FieldReader message((*messages)[i], item_path("messages", i), body.errors());
    Message made;
    if (!read_role(message, made.role)) return;
    made.content = read_content(message);
    if (made.role == Role::kTool) message.text("tool_call_id", made.tool_call_id);
    if (made.role == Role::kAssistant) {
      std::string reasoning;
      message.text("reasoning", reasoning);
      message.text("reasoning_content", reasoning);
      if (!reasoning.empty()) made.reasoning = std::move(reasoning);
    }
    read_calls(message, made);
    out.messages.push_back(std::move(made));
  }
}

void read_tools(FieldReader& body, ChatRequest& out) {
  const Json* tools = body.array("tools");
  if (tools == nullptr) return;
  for (size_t i = 0; i < tools->size() && !body.errors().any(); ++i) {
    const std::string path = item_path("tools", i);
    FieldReader tool((*tools)[i], path, body.errors());
    std::string type = "function";
    tool.text("type", type);
    if (type != "function") return tool.fail("type", "must be function");
    const Json* function = tool.object("function");
    if (function != nullptr) {
      read_function(*function, path + ".function", body.errors(), out);
    } else {
      read_function((*tools)[i], path, body.errors(), out);
    }
  }
}

void read_tool_choice(FieldReader& body, ChatRequest& out) {
  const Json* choice = body.find("tool_choice");
  if (choice == nullptr) return;
  if (choice->is_string()) return read_tool_choice_word(body, out);
  FieldReader fields(*choice, "tool_choice", body.errors());
  if (fields.required_text("type") != "function") {
    return fields.fail("type", "must be function");
  }
  const Json* function = fields.object("function");
  FieldReader named(
      function == nullptr ? *choice : *function,
      function == nullptr ? "tool_choice" : "tool_choice.function", body.errors());
  out.tool_choice = ToolChoice::kNamed;
  out.tool_name = named.required_text("name");
}

void read_logprobs(FieldReader& body, ChatRequest& out) {
  body.boolean("logprobs", out.sampling.logprobs);
  if (!body.has("top_logprobs")) return;
  body.integer("top_logprobs", out.sampling.num_logprobs, 0, kChatLogprobsMax);
  if (!out.sampling.logprobs && out.sampling.num_logprobs > 0) {
    body.fail("top_logprobs", "needs logprobs to be true");
  }
}

void refuse_unsupported(FieldReader& body) {
  for (const std::string_view key : {"functions", "function_call", "audio", "web_search_options"}) {
    if (body.has(key)) body.fail(key, "is not supported");
  }
  const Json* modalities = body.array("modalities");
  if (modalities == nullptr) return;
  for (const Json& item : *modalities) {
    if (item != "text") body.fail("modalities", "must be [\"text\"]");
  }
}

}  // namespace

ApiResult<ChatRequest> read_chat_request(const Json& json) {
  RequestErrors errors;
  FieldReader body(json, "", errors);
  ChatRequest out;
  if (errors.any()) return errors.first();
  read_model(body, out);
  read_messages(body, out);
  read_tools(body, out);
  read_tool_choice(body, out);
  check_tool_choice(body, out);
  body.boolean("parallel_tool_calls", out.parallel_tool_calls);
  read_sampling(body, out.sampling);
  read_stop(body, "stop", out.stop);
  read_budget(body, {"max_completion_tokens", "max_tokens"}, out.max_tokens);
  read_thinking(body, out.effort);
  read_format(body, "response_format", out);
  read_logprobs(body, out);
  body.integer("n", out.num_choices, 1, kChoicesMax);
  body.boolean("stream", out.stream);
  body.boolean("return_token_ids", out.return_token_ids);
  body.boolean("return_progress", out.include_progress);
  if (const Json* options = body.object("stream_options")) {
    FieldReader fields(*options, "stream_options", errors);
    fields.boolean("include_usage", out.include_usage);
  }
  refuse_unsupported(body);
  if (errors.any()) return errors.first();
  return out;
}

}  // namespace tandem::api
