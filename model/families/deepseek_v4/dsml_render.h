#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/families/deepseek_v4/piece_list.h"
#include "model/spec/prompt.h"

namespace tandem::v4 {

/// Writes the "## Tools" section for an array of function objects, each possibly inside a
/// {"type": "function", "function": ...} wrapper, which is taken off.
/// Errors: those of json_items.
Status render_tools(std::string_view tools_json, PieceList& out);

/// Whether `tools_json` declares at least one tool.
/// Errors: those of json_items.
Result<bool> declares_tools(std::string_view tools_json);

/// Writes the calls of one assistant message with the blank line before them.
///
/// A call with `sampled_block` is replayed byte for byte (bytes that are no UTF-8 become U+FFFD).
/// In it the DSML marker alone is a control token: the model samples it as one, and nothing else in
/// a block is one (a "</think>" inside a value is a value), so that tokenizing the replay gives the
/// sampled ids.
///
/// Otherwise values are written as they are, as the model was trained. Only what would end the
/// element that holds it is escaped: the parameter closer in a value, and & < > " in names.
void render_calls(std::span<const ToolCall> calls, PieceList& out);

/// Writes the start of a block with one call, up to the call's name or, if there is one, behind it.
void render_call_opening(std::string_view tool_name, PieceList& out);

/// Writes one tool result; its own closing tag inside the text loses the '<'.
void render_tool_result(std::string_view content, PieceList& out);

}  // namespace tandem::v4
