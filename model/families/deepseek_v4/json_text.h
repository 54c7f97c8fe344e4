#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tandem::v4 {

inline constexpr int kJsonDepthMax = 128;
inline constexpr size_t kJsonBytesMax = size_t{1} << 24;

/// How a document is written anew. Key order, repeated keys and the spelling of numbers stay as
/// they are.
enum class JsonStyle {
  // ", " and ": " between tokens; strings decoded and written as Python's json.dumps does with
  // ensure_ascii=False. Prompts use it, since models were trained on it.
  kPython,
  // No spaces; strings copied. What clients get.
  kCompact,
};

/// One JSON document, written anew.
/// Limits: kJsonBytesMax bytes, kJsonDepthMax levels.
/// Errors: kInvalidArgument names the byte and what is wrong: RFC 8259 syntax, UTF-8, the limits.
Result<std::string> respace_json(std::string_view text, JsonStyle style);

struct JsonMember {
  std::string key;  // decoded
  std::string value;
  bool is_string = false;  // value is then the decoded string, else JSON in the asked style
};

/// The members of an object in order; a repeated key keeps its first place and its last value.
/// Errors: those of respace_json; kInvalidArgument if the document is not an object.
Result<std::vector<JsonMember>> json_members(std::string_view text, JsonStyle style);

/// The items of an array, each in the asked style.
/// Errors: those of respace_json; kInvalidArgument if the document is not an array.
Result<std::vector<std::string>> json_items(std::string_view text, JsonStyle style);

/// Appends `text`, valid UTF-8, as the inside of a JSON string.
void append_json_escaped(std::string_view text, std::string& out);

/// `text`, valid UTF-8, as a JSON string with its quotes.
std::string json_string(std::string_view text);

}  // namespace tandem::v4
