#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/spec/prompt.h"

namespace tandem::test {

/// One line per event: "reasoning TEXT", "content TEXT", "begin 0 NAME", "arguments 0 JSON",
/// "end 0", "block TEXT", "error". Newlines in text are written as "\n". The error's own words are
/// left out.
std::string show(const std::vector<Event>& events);

/// Joins neighbouring events of one kind and tool.
std::vector<Event> joined(const std::vector<Event>& events);

/// What the streaming parser says to `text` fed in the given pieces.
std::vector<Event> parse_pieces(
    const std::vector<std::string_view>& pieces, const ParserOptions& options);

inline constexpr ParserOptions kTools = {.starts_in_reasoning = false, .tools_active = true};
inline constexpr ParserOptions kThinkTools = {.starts_in_reasoning = true, .tools_active = true};

}  // namespace tandem::test
