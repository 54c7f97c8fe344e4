#include "api/responses/responses_tools.h"

#include "api/responses/custom_input.h"
#include "api/surface/common_fields.h"

namespace tandem::api {
namespace {

const Json& local_shell_function() {
  static const Json kFunction = Json::parse(R"({
    "name": "local_shell",
    "description": "Runs a command on the user's machine and returns its output.",
    "parameters": {
      "type": "object",
      "properties": {
        "command": {"type": "array", "items": {"type": "string"}},
        "working_directory": {"type": "string"},
        "timeout_ms": {"type": "number"}
      },
      "required": ["command"]
    }
  })");
  return kFunction;
}

const Json& tool_search_parameters() {
  static const Json kParameters = Json::parse(R"({
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "number"}},
    "required": ["query"]
  })");
  return kParameters;
}

bool is_left_out(std::string_view type) {
  return type.starts_with("web_search") || type == "image_generation";
}

Json call_arguments(const std::string& arguments) {
  Json parsed = Json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? std::move(parsed) : Json::object();
}

/// The action of a local_shell_call.
Json shell_action(const std::string& arguments) {
  const Json given = call_arguments(arguments);
  Json out;
  out["type"] = "exec";
  out["command"] = Json::array();
  const auto command = given.find("command");
  if (command != given.end() && command->is_array()) {
    for (const Json& word : *command) {
      out["command"].push_back(word.is_string() ? word : Json(json_text(word)));
    }
  } else if (command != given.end() && command->is_string()) {
    out["command"] = {"sh", "-c", *command};
  }
  for (const char* key : {"timeout_ms", "working_directory"}) {
    if (const auto found = given.find(key); found != given.end()) out[key] = *found;
  }
  out["env"] = given.contains("env") && given["env"].is_object() ? given["env"] : Json::object();
  return out;
}

}  // namespace

std::string ResponsesTools::shown_name(std::string_view space, std::string_view name) {
  return str_cat(space, name);
}

ResponsesTool ResponsesTools::find(const std::string& shown_name) const {
  const auto found = by_shown_name_.find(shown_name);
  if (found != by_shown_name_.end()) return found->second;
  return {ToolForm::kFunction, shown_name, {}};
}

void ResponsesTools::add(
    ResponsesTool tool, const Json& shown, const std::string& path, RequestErrors& errors,
    ChatRequest& request) {
  const std::string name = shown_name(tool.space, tool.name);
  if (!by_shown_name_.emplace(name, std::move(tool)).second) {
    // A search may bring a tool again that is there already.
    if (!is_loading_) errors.add(path, str_cat("declares ", json_string(name), " twice"));
    return;
  }
  read_function(shown, path, errors, request);
}

void ResponsesTools::add_function(
    const Json& function, const std::string& path, const std::string& space, RequestErrors& errors,
    ChatRequest& request) {
  FieldReader fields(function, path, errors);
  bool is_deferred = false;
  fields.boolean("defer_loading", is_deferred);
  const std::string name = fields.required_text("name");
  if (errors.any() || (is_deferred && has_tool_search_ && !is_loading_)) return;
  Json shown;
  shown["name"] = shown_name(space, name);
  for (const char* key : {"description", "parameters"}) {
    if (const Json* value = fields.find(key)) shown[key] = *value;
  }
  add({ToolForm::kFunction, name, space}, shown, path, errors, request);
}

void ResponsesTools::read_namespace(FieldReader& tool, ChatRequest& request) {
  const std::string space = tool.required_text("name");
  const Json* functions = tool.array("tools");
  if (functions == nullptr) return tool.fail("tools", "is missing");
  for (size_t i = 0; i < functions->size() && !tool.errors().any(); ++i) {
    add_function((*functions)[i], item_path(tool.path("tools"), i), space, tool.errors(), request);
  }
}

void ResponsesTools::add_custom(FieldReader& tool, const std::string& path, ChatRequest& request) {
  const std::string name = tool.required_text("name");
  std::string description;
  tool.text("description", description);
  if (const Json* format = tool.object("format")) {
    FieldReader fields(*format, tool.path("format"), tool.errors());
    std::string definition;
    std::string syntax;
    fields.text("definition", definition);
    fields.text("syntax", syntax);
    if (!definition.empty()) {
      description += str_cat("\n\nThe input follows this grammar (", syntax, "):\n", definition);
    }
  }
  Json shown;
  shown["name"] = name;
  shown["description"] = std::move(description);
  shown["parameters"] = {
      {"type", "object"},
      {"properties", {{"input", {{"type", "string"}}}}},
      {"required", Json::array({"input"})}};
  add({ToolForm::kCustom, name, {}}, shown, path, tool.errors(), request);
}

void ResponsesTools::read_tool(
    const Json& value, const std::string& path, RequestErrors& errors, ChatRequest& request) {
  FieldReader tool(value, path, errors);
  std::string type = "function";
  tool.text("type", type);
  if (errors.any() || is_left_out(type)) return;
  if (type == "function") {
    const Json* nested = tool.object("function");
    const std::string at = nested == nullptr ? path : tool.path("function");
    add_function(nested == nullptr ? value : *nested, at, {}, errors, request);
  } else if (type == "namespace") {
    read_namespace(tool, request);
  } else if (type == "custom") {
    add_custom(tool, path, request);
  } else if (type == "tool_search") {
    Json shown;
    shown["name"] = "tool_search";
    const Json* description = tool.find("description");
    if (description != nullptr) shown["description"] = *description;
    const Json* parameters = tool.object("parameters");
    shown["parameters"] = parameters == nullptr ? tool_search_parameters() : *parameters;
    add({ToolForm::kToolSearch, "tool_search", {}}, shown, path, errors, request);
  } else if (type == "local_shell") {
    add({ToolForm::kLocalShell, "local_shell", {}}, local_shell_function(), path, errors, request);
  } else {
    tool.fail("type", str_cat("is ", json_string(type), ": this server runs no tools"));
  }
}

void ResponsesTools::read(
    const Json& tools, const std::string& path, bool is_loaded, RequestErrors& errors,
    ChatRequest& request) {
  is_loading_ = is_loaded;
  for (const Json& tool : tools) {
    if (!tool.is_object()) continue;
    const auto type = tool.find("type");
    has_tool_search_ |= type != tool.end() && *type == "tool_search";
  }
  for (size_t i = 0; i < tools.size() && !errors.any(); ++i) {
    read_tool(tools[i], item_path(path, i), errors, request);
  }
}

const char* call_item_prefix(ToolForm form) {
  switch (form) {
    case ToolForm::kFunction: return "fc_";
    case ToolForm::kCustom: return "ctc_";
    case ToolForm::kToolSearch: return "tsc_";
    case ToolForm::kLocalShell: return "lsh_";
  }
  TANDEM_UNREACHABLE();
}

Json call_item(
    const ResponsesTool& tool, const std::string& item_id, const AnswerCall& call,
    const char* status) {
  Json out;
  out["id"] = item_id;
  const auto start = [&](const char* type) {
    out["type"] = type;
    out["status"] = status;
    out["call_id"] = call.id;
  };
  switch (tool.form) {
    case ToolForm::kFunction:
      start("function_call");
      out["name"] = tool.name;
      if (!tool.space.empty()) out["namespace"] = tool.space;
      out["arguments"] = call.arguments;
      return out;
    case ToolForm::kCustom:
      start("custom_tool_call");
      out["name"] = tool.name;
      out["input"] = call.arguments.empty() ? std::string() : custom_input(call.arguments);
      return out;
    case ToolForm::kToolSearch:
      start("tool_search_call");
      out["execution"] = "client";
      out["arguments"] = call_arguments(call.arguments);
      return out;
    case ToolForm::kLocalShell:
      start("local_shell_call");
      out["action"] = shell_action(call.arguments);
      return out;
  }
  TANDEM_UNREACHABLE();
}

}  // namespace tandem::api
