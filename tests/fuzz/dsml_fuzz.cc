#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "model/families/deepseek_v4/json_text.h"
#include "model/families/deepseek_v4/markers.h"
#include "model/families/deepseek_v4/prompt.h"
#include "tests/model/families/deepseek_v4/events.h"

namespace tandem {
namespace {

/// Each call's arguments are one JSON object, begun and ended once and in order.
void check_calls(const std::vector<Event>& events) {
  int num_calls = 0;
  std::string arguments;
  for (const Event& event : events) {
    if (event.kind == Event::Kind::kToolBegin) {
      TANDEM_CHECK(event.tool_idx == num_calls++);
      arguments.clear();
    } else if (event.kind == Event::Kind::kToolArguments) {
      TANDEM_CHECK(event.tool_idx == num_calls - 1);
      arguments += event.data;
    } else if (event.kind == Event::Kind::kToolEnd) {
      // A JSON value at the limit of the depth is one level deeper inside the arguments.
      TANDEM_CHECK(arguments.starts_with('{') && arguments.ends_with('}'));
      const auto json = v4::json_members(arguments, v4::JsonStyle::kCompact);
      TANDEM_CHECK(json.ok() || json.status().message().ends_with("nested too deep"));
    }
  }
}

/// The answer as tokens would bring it: what spells a special token is one.
std::vector<Event> parse_tokens(std::string_view text, const ParserOptions& options) {
  const auto parser = v4_prompt_protocol()->parser(options);
  std::vector<Event> events;
  while (!text.empty()) {
    size_t begin = text.size();
    std::string_view found;
    for (const std::string_view spelling :
         {v4::kDsml, v4::kThinkOpen, v4::kThinkClose, v4::kUser, v4::kAssistant}) {
      const size_t at = text.find(spelling);
      if (at >= begin) continue;
      begin = at;
      found = spelling;
    }
    parser->push(text.substr(0, begin), events);
    if (!found.empty()) parser->push_control(found, events);
    text.remove_prefix(begin + found.size());
  }
  parser->finish(events);
  return test::joined(events);
}

}  // namespace
}  // namespace tandem

/// The first byte picks the options and the length of the pieces, the rest is the answer.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const tandem::ParserOptions options = {
      .starts_in_reasoning = (data[0] & 1) != 0, .tools_active = (data[0] & 2) != 0};
  const size_t piece_bytes = 1 + data[0] / 4;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto whole = tandem::v4_parse_output(text, options);
  tandem::check_calls(whole);

  const auto parser = tandem::v4_prompt_protocol()->parser(options);
  std::vector<tandem::Event> events;
  for (size_t pos = 0; pos < text.size(); pos += piece_bytes) {
    parser->push(text.substr(pos, piece_bytes), events);
  }
  parser->finish(events);
  TANDEM_CHECK(tandem::test::joined(events) == whole);
  tandem::check_calls(tandem::parse_tokens(text, options));
  return 0;
}
