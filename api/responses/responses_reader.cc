#include "api/responses/responses_reader.h"

#include <string>
#include <string_view>

#include "api/json/field_reader.h"
#include "api/responses/responses_input.h"
#include "api/surface/common_fields.h"
#include "base/limits.h"

namespace tandem::api {
namespace {

void refuse_stored_state(FieldReader& body) {
  for (const std::string_view key : {"previous_response_id", "conversation", "prompt"}) {
    if (body.has(key)) {
      body.fail(key, "is not supported: this server keeps no responses, send the whole input");
    }
  }
  bool in_background = false;
  body.boolean("background", in_background);
  if (in_background) body.fail("background", "is not supported");
}

void read_instructions(FieldReader& body, ChatRequest& out) {
  std::string instructions;
  body.text("instructions", instructions);
  if (instructions.empty()) return;
  Message message;
  message.role = Role::kSystem;
  message.content = std::move(instructions);
  out.messages.push_back(std::move(message));
}

void read_tool_choice(FieldReader& body, ChatRequest& out) {
  const Json* choice = body.find("tool_choice");
  if (choice == nullptr) return;
  if (choice->is_string()) return read_tool_choice_word(body, out);
  FieldReader fields(*choice, "tool_choice", body.errors());
  const std::string type = fields.required_text("type");
  out.tool_choice = ToolChoice::kNamed;
  if (type == "function" || type == "custom") {
    std::string space;
    fields.text("namespace", space);
    out.tool_name = ResponsesTools::shown_name(space, fields.required_text("name"));
  } else if (type == "local_shell" || type == "tool_search") {
    out.tool_name = type;
  } else {
    fields.fail("type", "must be function, custom, local_shell or tool_search");
  }
}

void read_reasoning(FieldReader& body, ResponsesRequest& out, Json& echo) {
  Json& shown = echo["reasoning"] = {{"effort", nullptr}, {"summary", nullptr}};
  const Json* value = body.object("reasoning");
  if (value == nullptr) return;
  FieldReader reasoning(*value, "reasoning", body.errors());
  read_effort(reasoning, "effort", out.chat.effort);
  if (const Json* effort = reasoning.find("effort")) shown["effort"] = *effort;
  std::string summary;
  reasoning.text("generate_summary", summary);  // the field's former name
  reasoning.text("summary", summary);
  if (summary.empty() || summary == "none") return;
  if (summary != "auto" && summary != "concise" && summary != "detailed") {
    return reasoning.fail("summary", "must be auto, concise or detailed");
  }
  out.shows_reasoning = true;
  shown["summary"] = summary;
}

void read_text(FieldReader& body, ChatRequest& out, Json& echo) {
  Json& shown = echo["text"] = {{"format", {{"type", "text"}}}};
  const Json* value = body.object("text");
  if (value == nullptr) return;
  FieldReader text(*value, "text", body.errors());
  read_format(text, "format", out);
  const Json* format = text.find("format");
  if (format != nullptr && format->is_object()) shown["format"] = *format;
}

void read_include(FieldReader& body, ResponsesRequest& out) {
  SamplingParams& sampling = out.chat.sampling;
  if (const Json* include = body.array("include")) {
    for (const Json& item : *include) {
      if (!item.is_string()) return body.fail("include", "must be an array of strings");
      if (item == "message.output_text.logprobs") sampling.logprobs = true;
      if (item == "reasoning.encrypted_content") out.seals_reasoning = true;
    }
  }
  body.integer("top_logprobs", sampling.num_logprobs, 0, kChatLogprobsMax);
  // The official service takes the number without the item, and then shows nothing.
  if (!sampling.logprobs) sampling.num_logprobs = 0;
}

void read_echo(FieldReader& body, const ChatRequest& chat, Json& echo) {
  echo["instructions"] = nullptr;
  echo["max_output_tokens"] = chat.max_tokens.has_value() ? Json(*chat.max_tokens) : Json(nullptr);
  const Json* metadata = body.object("metadata");
  echo["metadata"] = metadata == nullptr ? Json::object() : *metadata;
  echo["parallel_tool_calls"] = chat.parallel_tool_calls;
  echo["previous_response_id"] = nullptr;
  echo["store"] = false;
  echo["temperature"] = chat.sampling.temperature;
  const Json* choice = body.find("tool_choice");
  echo["tool_choice"] = choice == nullptr ? Json("auto") : *choice;
  echo["tools"] = Json::array();
  echo["top_p"] = chat.sampling.top_p;
  echo["truncation"] = "disabled";
}

}  // namespace

ApiResult<ResponsesRequest> read_responses_request(const Json& json) {
  RequestErrors errors;
  FieldReader body(json, "", errors);
  if (errors.any()) return errors.first();
  ResponsesRequest out;
  ChatRequest& chat = out.chat;
  chat.prompt_param = "input";
  refuse_stored_state(body);
  read_model(body, chat);
  read_instructions(body, chat);
  if (const Json* tools = body.array("tools")) {
    out.tools.read(*tools, "tools", /*is_loaded=*/false, errors, chat);
  }
  const Json* input = body.find("input");
  if (input == nullptr) {
    ApiError error;
    error.message = "missing input";
    error.param = "input";
    errors.add(std::move(error));
  } else {
    ResponsesInput(out.tools, errors, chat).read(*input);
    if (chat.messages.empty()) body.fail("input", "must not be empty");
    // The model speaks again: an empty turn asks it to.
    if (!errors.any() && chat.messages.back().role == Role::kAssistant)
      chat.messages.emplace_back();
  }
  read_tool_choice(body, chat);
  if (!errors.any()) check_tool_choice(body, chat);
  body.boolean("parallel_tool_calls", chat.parallel_tool_calls);
  read_sampling(body, chat.sampling);
  read_budget(body, {"max_output_tokens", "max_tokens"}, chat.max_tokens);
  read_thinking(body, chat.effort);
  read_reasoning(body, out, out.echo);
  read_text(body, chat, out.echo);
  read_include(body, out);
  body.boolean("stream", chat.stream);
  read_echo(body, chat, out.echo);
  if (errors.any()) return errors.first();
  return out;
}

}  // namespace tandem::api
