#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::v4 {

/// A tag that has not ended after this many bytes is none.
inline constexpr size_t kTagBytesMax = 1024;

/// One DSML tag. Beside the full spelling, "<｜DSML｜name ...>", these are read: either bar
/// missing, ASCII bars, the marker missing ("<name ...>", then only the four known names exactly),
/// a full marker without the '<' before it, and with a marker a known name with a letter or two
/// wrong.
struct DsmlTag {
  enum class Name {
    kBlock,  // tool_calls or function_calls
    kInvoke,
    kParameter,
    kOther,  // has the marker, but no known name or broken attributes
  };
  Name name = Name::kOther;
  bool closing = false;
  bool has_marker = false;
  bool exact = false;                         // the name is spelled as it should be
  std::optional<std::string> name_attribute;  // entities decoded, valid UTF-8
  std::optional<bool> string_attribute;
  size_t num_bytes = 0;

  bool opens(Name what) const { return !closing && name == what; }
  bool closes(Name what) const { return closing && name == what; }
};

enum class LexResult {
  kTag,
  kPartial,  // more bytes decide
  kNone,     // no tag starts here
};

/// Reads the tag at the start of `text`. The result does not depend on bytes after the tag.
LexResult lex_dsml_tag(std::string_view text, DsmlTag& tag);

/// Whether `text`, for which lex_dsml_tag said kPartial, already shows the marker.
bool shows_marker(std::string_view text);

/// Reads one of &amp; &lt; &gt; &quot; &apos; at the start of `text`, which starts with '&'.
/// kTag: sets `character` and `num_bytes`.
LexResult lex_entity(std::string_view text, char& character, size_t& num_bytes);

}  // namespace tandem::v4
