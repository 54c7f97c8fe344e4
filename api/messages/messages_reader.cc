#include "api/messages/messages_reader.h"

#include <string>
#include <string_view>
#include <utility>

#include "api/json/field_reader.h"
#include "api/surface/common_fields.h"
#include "base/limits.h"

namespace tandem::api {
namespace {

constexpr std::string_view kClientNote = "x-anthropic-";

bool is_client_note(std::string_view text) {
  return text.starts_with(kClientNote);
}

class Reader {
 public:
  Reader(const Json& body, RequestErrors& errors) : body_(body, "", errors), errors_(errors) {}

  ChatRequest read(MessagesUse use);

 private:
  void read_system();
  void read_messages(MessagesUse use);
  void read_system_message(const Json& content, const std::string& path);
  void read_user(const Json& content, const std::string& path);
  void read_assistant(const Json& content, const std::string& path);
  void read_user_block(const Json& block, const std::string& path);
  void read_assistant_block(const Json& block, const std::string& path, Message& out);
  void read_tool_result(FieldReader& block);
  void read_tools();
  void read_tool_choice();
  void read_output_config();

  /// The text of a string or of an array of text blocks; `what` names what else was found.
  std::string text_of(
      const Json& value, const std::string& path, std::string_view separator, bool drops_notes);
  void add(Role role, std::string content);

  FieldReader body_;
  RequestErrors& errors_;
  ChatRequest out_;
};

void Reader::add(Role role, std::string content) {
  Message message;
  message.role = role;
  message.content = std::move(content);
  out_.messages.push_back(std::move(message));
}

std::string Reader::text_of(
    const Json& value, const std::string& path, std::string_view separator, bool drops_notes) {
  std::string out;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (!drops_notes || !is_client_note(text)) return text;
    // A note in front of other text ends with its line.
    const size_t end = text.find('\n');
    return end == std::string::npos ? std::string() : text.substr(end + 1);
  }
  if (!value.is_array()) {
    errors_.add(path, "must be a string or an array of blocks");
    return out;
  }
  bool is_first = true;
  for (size_t i = 0; i < value.size(); ++i) {
    FieldReader block(value[i], item_path(path, i), errors_);
    std::string type;
    block.text("type", type);
    if (type != "text") {
      refuse_part(errors_, item_path(path, i), type);
      return out;
    }
    std::string text;
    block.text("text", text);
    if (drops_notes && is_client_note(text)) continue;
    if (!is_first) out += separator;
    is_first = false;
    out += text;
  }
  return out;
}

void Reader::read_system() {
  const Json* system = body_.find("system");
  if (system == nullptr) return;
  std::string text = text_of(*system, "system", "\n", /*drops_notes=*/true);
  if (!text.empty()) add(Role::kSystem, std::move(text));
}

void Reader::read_system_message(const Json& content, const std::string& path) {
  std::string text = text_of(content, path, "\n", /*drops_notes=*/true);
  if (!text.empty()) add(Role::kSystem, std::move(text));
}

void Reader::read_tool_result(FieldReader& block) {
  Message message;
  message.role = Role::kTool;
  message.tool_call_id = block.required_text("tool_use_id");
  if (const Json* content = block.find("content")) {
    message.content = text_of(*content, block.path("content"), "\n", /*drops_notes=*/false);
  }
  bool is_error = false;
  block.boolean("is_error", is_error);
  // The client's text says what went wrong; an empty result would read as a success.
  if (is_error && message.content.empty()) message.content = "error";
  out_.messages.push_back(std::move(message));
}

void Reader::read_user_block(const Json& value, const std::string& path) {
  FieldReader block(value, path, errors_);
  std::string type;
  block.text("type", type);
  if (type == "text") {
    std::string text;
    block.text("text", text);
    if (!text.empty()) add(Role::kUser, std::move(text));
  } else if (type == "tool_result") {
    read_tool_result(block);
  } else {
    refuse_part(errors_, path, type);
  }
}

void Reader::read_user(const Json& content, const std::string& path) {
  if (content.is_string()) return add(Role::kUser, content.get<std::string>());
  if (!content.is_array()) return errors_.add(path, "must be a string or an array of blocks");
  const size_t num_before = out_.messages.size();
  for (size_t i = 0; i < content.size(); ++i) read_user_block(content[i], item_path(path, i));
  if (out_.messages.size() == num_before) add(Role::kUser, "");  // the turn was there
}

void Reader::read_assistant_block(const Json& value, const std::string& path, Message& out) {
  FieldReader block(value, path, errors_);
  std::string type;
  block.text("type", type);
  std::string text;
  if (type == "text") {
    block.text("text", text);
    out.content += text;
  } else if (type == "thinking") {
    block.text("thinking", text);
    out.reasoning = out.reasoning.value_or("") + text;
  } else if (type == "redacted_thinking") {
    return;
  } else if (type == "tool_use") {
    ToolCall call;
    call.id = block.required_text("id");
    call.name = block.required_text("name");
    const Json* input = block.object("input");
    call.arguments = input == nullptr ? "{}" : json_text(*input);
    out.tool_calls.push_back(std::move(call));
  } else {
    refuse_part(errors_, path, type);
  }
}

void Reader::read_assistant(const Json& content, const std::string& path) {
  if (content.is_string()) return add(Role::kAssistant, content.get<std::string>());
  if (!content.is_array()) return errors_.add(path, "must be a string or an array of blocks");
  Message message;
  message.role = Role::kAssistant;
  for (size_t i = 0; i < content.size(); ++i) {
    read_assistant_block(content[i], item_path(path, i), message);
  }
  out_.messages.push_back(std::move(message));
}

void Reader::read_messages(MessagesUse use) {
  const Json* messages = body_.array("messages");
  if (messages == nullptr) return body_.fail("messages", "is missing");
  if (messages->empty()) return body_.fail("messages", "must not be empty");
  if (static_cast<int64_t>(messages->size()) > kMessagesMax) {
    return body_.fail("messages", str_cat("has more than ", kMessagesMax, " messages"));
  }
  std::string role;
  for (size_t i = 0; i < messages->size() && !errors_.any(); ++i) {
    FieldReader message((*messages)[i], item_path("messages", i), errors_);
    role = message.required_text("role");
    const Json* content = message.find("content");
    if (content == nullptr) {
      message.fail("content", "is missing");
      continue;
    }
    const std::string path = message.path("content");
    if (role == "user") {
      read_user(*content, path);
    } else if (role == "assistant") {
      read_assistant(*content, path);
    } else if (role == "system") {
      read_system_message(*content, path);
    } else {
      message.fail(
          "role", str_cat("is ", json_string(role), ", must be user, assistant or system"));
    }
  }
  if (use == MessagesUse::kCountTokens) return;
  if (role == "assistant") {
    errors_.add(
        item_path("messages", messages->size() - 1),
        "must not be the assistant's: the model cannot continue a message that has ended");
  }
}

void Reader::read_tools() {
  const Json* tools = body_.array("tools");
  if (tools == nullptr) return;
  for (size_t i = 0; i < tools->size() && !errors_.any(); ++i) {
    FieldReader tool((*tools)[i], item_path("tools", i), errors_);
    std::string type = "custom";
    tool.text("type", type);
    if (type != "custom") {
      return tool.fail("type", str_cat("is ", json_string(type), ": this server runs no tools"));
    }
    Json function = Json::object();
    function["name"] = tool.required_text("name");
    if (const Json* description = tool.find("description")) function["description"] = *description;
    if (const Json* schema = tool.object("input_schema")) function["parameters"] = *schema;
    read_function(function, item_path("tools", i), errors_, out_);
  }
}

void Reader::read_tool_choice() {
  const Json* value = body_.object("tool_choice");
  if (value == nullptr) return;
  FieldReader choice(*value, "tool_choice", errors_);
  const std::string type = choice.required_text("type");
  bool is_single = false;
  choice.boolean("disable_parallel_tool_use", is_single);
  if (is_single) out_.parallel_tool_calls = false;
  if (type == "auto") return;
  if (type == "none") {
    out_.tool_choice = ToolChoice::kNone;
  } else if (type == "any") {
    out_.tool_choice = ToolChoice::kRequired;
  } else if (type == "tool") {
    out_.tool_choice = ToolChoice::kNamed;
    out_.tool_name = choice.required_text("name");
  } else {
    choice.fail("type", str_cat("is ", json_string(type), ", must be auto, any, tool or none"));
  }
  check_tool_choice(body_, out_);
}

void Reader::read_output_config() {
  const Json* value = body_.object("output_config");
  if (value == nullptr) return;
  FieldReader config(*value, "output_config", errors_);
  read_effort(config, "effort", out_.effort);
  read_format(config, "format", out_);
}

ChatRequest Reader::read(MessagesUse use) {
  if (errors_.any()) return std::move(out_);
  read_model(body_, out_);
  read_system();
  read_messages(use);
  read_tools();
  read_tool_choice();
  read_output_config();
  read_thinking(body_, out_.effort);
  read_sampling(body_, out_.sampling);
  read_budget(body_, {"max_tokens"}, out_.max_tokens);
  read_stop(body_, "stop_sequences", out_.stop);
  body_.boolean("stream", out_.stream);
  out_.include_progress = true;  // the start of a stream tells how much of the prompt was cached
  return std::move(out_);
}

}  // namespace

ApiResult<ChatRequest> read_messages_request(const Json& body, MessagesUse use) {
  RequestErrors errors;
  ChatRequest out = Reader(body, errors).read(use);
  if (errors.any()) return errors.first();
  return out;
}

}  // namespace tandem::api
