#include "model/families/deepseek_v4/dsml_render.h"

#include <array>
#include <utility>

#include "base/utf8.h"
#include "model/families/deepseek_v4/json_text.h"

namespace tandem::v4 {
namespace {

constexpr std::array<std::string_view, 1> kDsmlOnly = {kDsml};
constexpr std::array<std::string_view, 3> kToolsControls = {kDsml, kThinkOpen, kThinkClose};

// The models were trained on these bytes, control tokens included.
constexpr std::string_view kToolsHead =
    "## Tools\n\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools by "
    "writing a \"<｜DSML｜tool_calls>\" block like the following:\n\n"
    "<｜DSML｜tool_calls>\n"
    "<｜DSML｜invoke name=\"$TOOL_NAME\">\n"
    "<｜DSML｜parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE"
    "</｜DSML｜parameter>\n"
    "...\n"
    "</｜DSML｜invoke>\n"
    "<｜DSML｜invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</｜DSML｜invoke>\n"
    "</｜DSML｜tool_calls>\n\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types "
    "(numbers, booleans, arrays, objects), pass the value in JSON format and set "
    "`string=\"false\"`.\n\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning "
    "inside <think>...</think> BEFORE any tool calls or final response.\n\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n\n"
    "### Available Tool Schemas\n\n";
constexpr std::string_view kToolsTail =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool "
    "calls.\n";

constexpr std::string_view kParameterCloser = "</｜DSML｜parameter>";
constexpr std::string_view kResultCloser = "</tool_result>";

/// `text` with the '<' of every `closer` replaced.
std::string without_closer(
    std::string_view text, std::string_view closer, std::string_view replacement) {
  std::string out;
  size_t start = 0;
  for (size_t pos = text.find(closer); pos != std::string_view::npos;
       pos = text.find(closer, pos + 1)) {
    out += text.substr(start, pos - start);
    out += replacement;
    start = pos + 1;
  }
  out += text.substr(start);
  return out;
}

std::string attribute(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

/// The function object inside a wrapper, or the item itself.
std::string unwrapped(std::string item) {
  const auto members = json_members(item, JsonStyle::kPython);
  if (!members.ok()) return item;
  const JsonMember* function = nullptr;
  bool is_function = false;
  for (const JsonMember& member : *members) {
    if (member.key == "type") is_function = member.is_string && member.value == "function";
    if (member.key == "function" && member.value.starts_with('{')) function = &member;
  }
  return is_function && function != nullptr ? function->value : item;
}

void dsml_tag(std::string_view before, std::string_view after, PieceList& out) {
  out.text(before);
  out.control(kDsml);
  out.text(after);
}

void render_parameter(const JsonMember& member, PieceList& out) {
  dsml_tag("<", "parameter name=\"", out);
  out.text(attribute(member.key));
  out.text(member.is_string ? "\" string=\"true\">" : "\" string=\"false\">");
  out.text(without_closer(member.value, kParameterCloser, member.is_string ? "&lt;" : "\\u003c"));
  dsml_tag("</", "parameter>", out);
}

void render_call(const ToolCall& call, PieceList& out) {
  dsml_tag("<", "invoke name=\"", out);
  out.text(attribute(call.name));
  out.text("\">\n");
  auto members = json_members(call.arguments, JsonStyle::kPython);
  if (members.ok()) {
    for (size_t i = 0; i < members->size(); ++i) {
      if (i > 0) out.text("\n");
      render_parameter((*members)[i], out);
    }
  } else {
    render_parameter({"arguments", call.arguments, true}, out);
  }
  out.text("\n");
  dsml_tag("</", "invoke>", out);
}

}  // namespace

Status render_tools(std::string_view tools_json, PieceList& out) {
  TANDEM_TRY_ASSIGN(std::vector<std::string> items, json_items(tools_json, JsonStyle::kPython));
  out.markup(kToolsHead, kToolsControls);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.text("\n");
    out.text(unwrapped(std::move(items[i])));
  }
  out.text(kToolsTail);
  return {};
}

Result<bool> declares_tools(std::string_view tools_json) {
  if (tools_json.empty()) return false;
  TANDEM_TRY_ASSIGN(const auto items, json_items(tools_json, JsonStyle::kPython));
  return !items.empty();
}

void render_calls(std::span<const ToolCall> calls, PieceList& out) {
  if (calls.empty()) return;
  if (!calls.front().sampled_block.empty()) {
    // A prompt is UTF-8; a model may have sampled a part of a character.
    out.markup(repair_utf8(calls.front().sampled_block), kDsmlOnly);
    return;
  }
  out.text("\n\n");
  dsml_tag("<", "tool_calls>\n", out);
  for (const ToolCall& call : calls) {
    render_call(call, out);
    out.text("\n");
  }
  dsml_tag("</", "tool_calls>", out);
}

void render_call_opening(std::string_view tool_name, PieceList& out) {
  out.text("\n\n");
  dsml_tag("<", "tool_calls>\n", out);
  dsml_tag("<", "invoke name=\"", out);
  if (tool_name.empty()) return;
  out.text(attribute(tool_name));
  out.text("\">\n");
}

void render_tool_result(std::string_view content, PieceList& out) {
  out.text("<tool_result>");
  out.text(without_closer(content, kResultCloser, "&lt;"));
  out.text(kResultCloser);
}

}  // namespace tandem::v4
