#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "model/spec/prompt.h"

namespace tandem {

/// The prompt protocol of DeepSeek V4 Flash and PRO. Rendering: prompt_render.h; reading answers:
/// output_parser.h. Sampling defaults are those of the official generation config (temperature 1,
/// top-p 1), which has no min-p. Turns end at EOS; BOS and the user marker never belong to an
/// answer and end it too.
std::unique_ptr<PromptProtocol> v4_prompt_protocol();

/// The events of a whole answer, neighbours of one kind and tool joined: the streaming parser, fed
/// once.
std::vector<Event> v4_parse_output(std::string_view text, const ParserOptions& options);

}  // namespace tandem
