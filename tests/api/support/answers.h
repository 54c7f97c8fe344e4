#pragma once

#include <string>
#include <vector>

#include "api/generation/answer.h"
#include "api/surface/surface.h"
#include "model/spec/prompt.h"

namespace tandem::test {

/// An answer on its way to a client: what the parser and the answer builder make of sampled text
/// that arrives in pieces.
struct ScriptedAnswer {
  std::vector<api::Delta> deltas;
  api::Completion completion;
};

struct Script {
  std::vector<std::string> pieces;  // sampled text
  ParserOptions parser{.starts_in_reasoning = true, .tools_active = true};
  FinishReason finish = FinishReason::kStop;  // unless a call ends the turn
  std::optional<std::string> stop_string;
  std::string tool_id_prefix = "call_";
};

/// Usage is 100 prompt tokens, 60 of them cached, and one completion token a piece.
ScriptedAnswer play(const Script& script);

/// The text cut into pieces of `size` bytes; the last may be shorter.
std::vector<std::string> pieces_of(const std::string& text, size_t size);

/// The worked example of one call: reasoning, a word, get_time(tz, n).
std::string example_answer();
/// The same, cut where one fragment of the arguments ends and the next begins.
std::vector<std::string> example_pieces();

/// A call in reasoning that never ends.
std::string forgotten_end_answer();
/// Calls of read_file(path) and bash(command) with one text, after reasoning that is empty.
std::string parallel_answer();

api::ResponseHead example_head();

/// All that an encoder writes for an answer.
std::string encode(api::StreamEncoder& encoder, const ScriptedAnswer& answer);

}  // namespace tandem::test
