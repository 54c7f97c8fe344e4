#include "api/responses/responses_input.h"

#include <utility>

#include "api/responses/sealed_reasoning.h"
#include "api/surface/common_fields.h"
#include "base/limits.h"

namespace tandem::api {
namespace {

bool is_text_part(std::string_view type) {
  return type == "input_text" || type == "output_text" || type == "text" ||
         type == "summary_text" || type == "reasoning_text";
}

/// The name of a call that only the vendor's servers make, from its item's type; empty for others.
std::string vendor_call_name(std::string_view type) {
  for (const std::string_view name : {"web_search", "image_generation"}) {
    if (type.starts_with(name) && type.substr(name.size()) == "_call") return std::string(name);
  }
  return {};
}

bool is_output(std::string_view type) {
  return type == "function_call_output" || type == "custom_tool_call_output" ||
         type == "local_shell_call_output" || type == "web_search_call_output" ||
         type == "image_generation_call_output";
}

bool is_skipped(std::string_view type) {
  return type == "compaction" || type == "context_compaction";
}

}  // namespace

void ResponsesInput::read(const Json& input) {
  if (input.is_string()) {
    Message message;
    message.content = input.get<std::string>();
    request_.messages.push_back(std::move(message));
    return;
  }
  if (!input.is_array()) return errors_.add("input", "must be a string or an array of items");
  if (static_cast<int64_t>(input.size()) > kMessagesMax) {
    return errors_.add("input", str_cat("has more than ", kMessagesMax, " items"));
  }
  for (size_t i = 0; i < input.size() && !errors_.any(); ++i) {
    read_item(input[i], item_path("input", i));
  }
  flush_reasoning();
}

void ResponsesInput::read_item(const Json& value, const std::string& path) {
  FieldReader item(value, path, errors_);
  std::string type = item.has("role") ? "message" : "";
  item.text("type", type);
  std::string status = "completed";
  item.text("status", status);
  if (errors_.any() || is_skipped(type)) return;
  if (status != "completed") {
    return item.fail("status", "must be completed: what is unfinished is no history");
  }
  if (type == "message") {
    read_message(item);
  } else if (type == "reasoning") {
    read_reasoning(item);
  } else if (type == "function_call") {
    read_function_call(item);
  } else if (type == "custom_tool_call") {
    read_custom_call(item);
  } else if (type == "local_shell_call") {
    read_shell_call(item);
  } else if (type == "tool_search_call") {
    read_search_call(item);
  } else if (type == "tool_search_output") {
    read_search_output(item);
  } else if (is_output(type)) {
    read_output(item);
  } else if (const std::string name = vendor_call_name(type); !name.empty()) {
    read_vendor_call(item, name);
  } else if (type.empty()) {
    item.fail("type", "is missing");
  } else {
    item.fail("type", str_cat("is ", json_string(type), ", which is not supported"));
  }
}

std::string ResponsesInput::text_of(FieldReader& item, std::string_view key) {
  const Json* value = item.find(key);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  const std::string path = item.path(key);
  if (!value->is_array()) {
    errors_.add(path, "must be a string or an array of parts");
    return {};
  }
  std::string out;
  for (size_t i = 0; i < value->size() && !errors_.any(); ++i) {
    FieldReader part((*value)[i], item_path(path, i), errors_);
    const std::string type = part.required_text("type");
    if (errors_.any()) break;
    if (!is_text_part(type)) {
      refuse_part(errors_, item_path(path, i), type);
      break;
    }
    if (!part.has("text")) part.fail("text", "is missing");
    std::string text;
    part.text("text", text);
    out += text;
  }
  return out;
}

void ResponsesInput::read_message(FieldReader& item) {
  const std::string role = item.required_text("role");
  Message message;
  if (role == "user") {
    message.role = Role::kUser;
  } else if (role == "assistant") {
    message.role = Role::kAssistant;
  } else if (role == "system" || role == "developer") {
    message.role = Role::kSystem;
  } else {
    return item.fail("role", "must be user, assistant, system or developer");
  }
  if (!item.has("content")) item.fail("content", "is missing");
  message.content = text_of(item, "content");
  if (message.role == Role::kAssistant) {
    if (!reasoning_.empty()) message.reasoning = std::exchange(reasoning_, {});
  } else {
    flush_reasoning();
  }
  request_.messages.push_back(std::move(message));
}

void ResponsesInput::read_reasoning(FieldReader& item) {
  std::string text = text_of(item, "summary") + text_of(item, "content");
  if (const Json* sealed = item.find("encrypted_content"); sealed != nullptr) {
    if (!sealed->is_string()) return item.fail("encrypted_content", "must be a string");
    auto exact = unseal_reasoning(sealed->get_ref<const std::string&>());
    if (exact.has_value()) text = std::move(*exact);
  }
  reasoning_ += text;
}

void ResponsesInput::add_call(std::string id, std::string name, std::string arguments) {
  if (errors_.any()) return;
  const bool joins = reasoning_.empty() && !request_.messages.empty() &&
                     request_.messages.back().role == Role::kAssistant;
  if (!joins) {
    Message message;
    message.role = Role::kAssistant;
    if (!reasoning_.empty()) message.reasoning = std::exchange(reasoning_, {});
    request_.messages.push_back(std::move(message));
  }
  ToolCall call;
  call.id = std::move(id);
  call.name = std::move(name);
  call.arguments = std::move(arguments);
  request_.messages.back().tool_calls.push_back(std::move(call));
}

void ResponsesInput::read_function_call(FieldReader& item) {
  std::string space;
  item.text("namespace", space);
  const std::string name = item.required_text("name");
  add_call(
      item.required_text("call_id"), ResponsesTools::shown_name(space, name),
      arguments_text(item, "arguments"));
}

void ResponsesInput::read_custom_call(FieldReader& item) {
  const std::string name = item.required_text("name");
  std::string input;
  item.text("input", input);
  Json arguments;
  arguments["input"] = std::move(input);
  add_call(item.required_text("call_id"), name, json_text(arguments));
}

void ResponsesInput::read_shell_call(FieldReader& item) {
  const Json* action = item.object("action");
  Json arguments = action == nullptr ? Json::object() : *action;
  arguments.erase("type");
  const auto env = arguments.find("env");
  if (env != arguments.end() && (env->is_null() || env->empty())) arguments.erase("env");
  std::string id;
  item.text("id", id);
  if (item.has("call_id")) item.text("call_id", id);
  add_call(std::move(id), "local_shell", json_text(arguments));
}

void ResponsesInput::read_search_call(FieldReader& item) {
  add_call(item.required_text("call_id"), "tool_search", arguments_text(item, "arguments"));
}

void ResponsesInput::read_vendor_call(FieldReader& item, const std::string& name) {
  std::string id;
  item.text("id", id);
  if (item.has("call_id")) item.text("call_id", id);
  const Json* action = item.find("action");
  add_call(std::move(id), name, action == nullptr ? "{}" : json_text(*action));
}

void ResponsesInput::add_result(std::string id, std::string content) {
  flush_reasoning();
  Message message;
  message.role = Role::kTool;
  message.tool_call_id = std::move(id);
  message.content = std::move(content);
  request_.messages.push_back(std::move(message));
}

void ResponsesInput::read_output(FieldReader& item) {
  std::string id = item.required_text("call_id");
  if (errors_.any()) return;
  const Json* output = item.find("output");
  if (output == nullptr) return item.fail("output", "is missing");
  // Some clients send what their tool returned as it is.
  std::string text = output->is_object() ? json_text(*output) : text_of(item, "output");
  add_result(std::move(id), std::move(text));
}

void ResponsesInput::read_search_output(FieldReader& item) {
  const Json* found = item.array("tools");
  if (found == nullptr) return item.fail("tools", "must be an array");
  std::string id;
  item.text("call_id", id);
  const size_t num_before = request_.tools.size();
  tools_.read(*found, item.path("tools"), /*is_loaded=*/true, errors_, request_);
  std::string content = "Tools that can be called now:";
  for (size_t i = num_before; i < request_.tools.size(); ++i) {
    content += str_cat("\n", request_.tools[i].name);
  }
  if (request_.tools.size() == num_before) content = "No new tool was found.";
  add_result(std::move(id), std::move(content));
}

void ResponsesInput::flush_reasoning() {
  if (reasoning_.empty()) return;
  Message message;
  message.role = Role::kAssistant;
  message.reasoning = std::exchange(reasoning_, {});
  request_.messages.push_back(std::move(message));
}

}  // namespace tandem::api
