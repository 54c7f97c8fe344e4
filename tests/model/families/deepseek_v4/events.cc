#include "tests/model/families/deepseek_v4/events.h"

#include "model/families/deepseek_v4/prompt.h"

namespace tandem::test {

std::string show(const std::vector<Event>& events) {
  std::string out;
  for (const Event& event : events) {
    const std::string idx = std::to_string(event.tool_idx);
    switch (event.kind) {
      case Event::Kind::kReasoning: out += "reasoning "; break;
      case Event::Kind::kContent: out += "content "; break;
      case Event::Kind::kToolBegin: out += "begin " + idx + " "; break;
      case Event::Kind::kToolArguments: out += "arguments " + idx + " "; break;
      case Event::Kind::kToolEnd: out += "end " + idx; break;
      case Event::Kind::kToolBlockEnd: out += "block "; break;
      case Event::Kind::kParseError: out += "error\n"; continue;
    }
    for (const char c : event.data) out += c == '\n' ? std::string("\\n") : std::string(1, c);
    out += '\n';
  }
  return out;
}

std::vector<Event> joined(const std::vector<Event>& events) {
  std::vector<Event> out;
  for (const Event& event : events) {
    const bool is_text = event.kind == Event::Kind::kReasoning ||
                         event.kind == Event::Kind::kContent ||
                         event.kind == Event::Kind::kToolArguments;
    if (is_text && !out.empty() && out.back().kind == event.kind &&
        out.back().tool_idx == event.tool_idx) {
      out.back().data += event.data;
    } else {
      out.push_back(event);
    }
  }
  return out;
}

std::vector<Event> parse_pieces(
    const std::vector<std::string_view>& pieces, const ParserOptions& options) {
  const auto parser = v4_prompt_protocol()->parser(options);
  std::vector<Event> out;
  for (const std::string_view piece : pieces) parser->push(piece, out);
  parser->finish(out);
  return joined(out);
}

}  // namespace tandem::test
