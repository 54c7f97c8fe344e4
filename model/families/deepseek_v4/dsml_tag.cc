#include "model/families/deepseek_v4/dsml_tag.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "model/families/deepseek_v4/markers.h"

namespace tandem::v4 {
namespace {

constexpr std::string_view kBar = "｜";
constexpr std::string_view kMarkerWord = "DSML";

struct KnownName {
  std::string_view spelling;
  DsmlTag::Name name;
  size_t num_slips;  // wrong letters that still mean this name
};
constexpr std::array<KnownName, 4> kKnownNames = {{
    {"tool_calls", DsmlTag::Name::kBlock, 2},
    {"function_calls", DsmlTag::Name::kBlock, 2},
    {"invoke", DsmlTag::Name::kInvoke, 1},
    {"parameter", DsmlTag::Name::kParameter, 2},
}};
constexpr size_t kNameBytesMax = 32;

/// Number of letters to insert, delete or replace to turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

/// Reads a tag from left to right. Each step says whether to go on (kTag), to wait, or to give up.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  LexResult tag(DsmlTag& tag) {
    if (const LexResult head = this->head(tag); head != LexResult::kTag) return head;
    if (const LexResult name = this->name(tag); name != LexResult::kTag) return name;
    const LexResult attributes = this->attributes(tag);
    if (attributes == LexResult::kPartial) return attributes;
    if (attributes == LexResult::kNone) {
      if (!tag.has_marker) return LexResult::kNone;
      tag.name = DsmlTag::Name::kOther;
      tag.exact = false;
    }
    tag.num_bytes = pos_;
    return LexResult::kTag;
  }

  bool seen_marker() const { return seen_marker_; }

 private:
  bool at_end() const { return pos_ == text_.size(); }
  char peek() const { return text_[pos_]; }

  /// kTag: `word` is here and is passed.
  LexResult word(std::string_view word) {
    const std::string_view here = text_.substr(pos_, word.size());
    if (here == word) {
      pos_ += word.size();
      return LexResult::kTag;
    }
    return word.starts_with(here) ? LexResult::kPartial : LexResult::kNone;
  }

  LexResult bar() {
    if (const LexResult wide = word(kBar); wide != LexResult::kNone) return wide;
    return word("|");
  }

  LexResult head(DsmlTag& tag) {
    if (text_.starts_with('<')) {
      ++pos_;
      if (at_end()) return LexResult::kPartial;
      if (peek() == '/') {
        tag.closing = true;
        ++pos_;
      }
      return marker(tag);
    }
    const LexResult bare = word(kDsml);
    tag.has_marker = seen_marker_ = bare == LexResult::kTag;
    return bare;
  }

  LexResult marker(DsmlTag& tag) {
    const LexResult first_bar = bar();
    if (first_bar == LexResult::kPartial) return first_bar;
    const LexResult marker_word = word(kMarkerWord);
    if (marker_word == LexResult::kPartial) return marker_word;
    if (marker_word == LexResult::kNone) {
      return first_bar == LexResult::kTag ? LexResult::kNone : LexResult::kTag;
    }
    const LexResult second_bar = bar();
    if (second_bar == LexResult::kPartial) return second_bar;
    if (second_bar == LexResult::kNone && first_bar == LexResult::kNone) return LexResult::kNone;
    tag.has_marker = seen_marker_ = true;
    return LexResult::kTag;
  }

  LexResult name(DsmlTag& tag) {
    const size_t start = pos_;
    while (!at_end() && is_name_char(peek()) && pos_ - start < kNameBytesMax) ++pos_;
    const std::string_view name = text_.substr(start, pos_ - start);
    if (at_end() && name.size() < kNameBytesMax) {
      const bool can_be_known =
          tag.has_marker ||
          std::any_of(kKnownNames.begin(), kKnownNames.end(), [&](const auto& known) {
            return known.spelling.starts_with(name);
          });
      return can_be_known ? LexResult::kPartial : LexResult::kNone;
    }
    for (const KnownName& known : kKnownNames) {
      tag.exact = name == known.spelling;
      if (tag.exact || (tag.has_marker && edit_distance(name, known.spelling) <= known.num_slips)) {
        tag.name = known.name;
        return LexResult::kTag;
      }
    }
    return tag.has_marker ? LexResult::kTag : LexResult::kNone;
  }

  /// Reads up to and with the '>'. kNone: what is here cannot stand in a tag; the tag ends before.
  LexResult attributes(DsmlTag& tag) {
    while (true) {
      const size_t before_space = pos_;
      while (!at_end() && is_dsml_space(peek())) ++pos_;
      if (at_end()) return LexResult::kPartial;
      if (peek() == '>') {
        ++pos_;
        return LexResult::kTag;
      }
      if (pos_ == before_space || !is_name_char(peek())) {
        pos_ = before_space;
        return LexResult::kNone;
      }
      const LexResult one = attribute(tag);
      if (one == LexResult::kNone) pos_ = before_space;
      if (one != LexResult::kTag) return one;
    }
  }

  LexResult attribute(DsmlTag& tag) {
    const size_t key_start = pos_;
    while (!at_end() && is_name_char(peek())) ++pos_;
    const std::string_view key = text_.substr(key_start, pos_ - key_start);
    if (at_end()) return LexResult::kPartial;
    if (const LexResult equals = word("="); equals != LexResult::kTag) return equals;
    if (at_end()) return LexResult::kPartial;
    const char quote = peek();
    if (quote != '"' && quote != '\'') return LexResult::kNone;
    const size_t value_start = ++pos_;
    const size_t value_end = text_.find(quote, value_start);
    if (value_end == std::string_view::npos) return LexResult::kPartial;
    pos_ = value_end + 1;
    const std::string_view value = text_.substr(value_start, value_end - value_start);
    if (key == "name") tag.name_attribute = decoded(value);
    if (key == "string") tag.string_attribute = value == "true";
    return LexResult::kTag;
  }

  static std::string decoded(std::string_view value) {
    std::string out;
    for (size_t pos = 0; pos < value.size();) {
      char character = value[pos];
      size_t num_bytes = 1;
      if (character == '&' &&
          lex_entity(value.substr(pos), character, num_bytes) != LexResult::kTag) {
        character = '&';
        num_bytes = 1;
      }
      out += character;
      pos += num_bytes;
    }
    return repair_utf8(out);
  }

  std::string_view text_;
  size_t pos_ = 0;
  bool seen_marker_ = false;
};

}  // namespace

LexResult lex_dsml_tag(std::string_view text, DsmlTag& tag) {
  tag = {};
  Lexer lexer(text.substr(0, kTagBytesMax));
  const LexResult result = lexer.tag(tag);
  if (result != LexResult::kPartial || text.size() < kTagBytesMax) return result;
  if (!tag.has_marker) return LexResult::kNone;
  tag.name = DsmlTag::Name::kOther;
  tag.exact = false;
  tag.num_bytes = kTagBytesMax;
  return LexResult::kTag;
}

bool shows_marker(std::string_view text) {
  DsmlTag tag;
  Lexer lexer(text);
  return lexer.tag(tag) == LexResult::kPartial && lexer.seen_marker();
}

LexResult lex_entity(std::string_view text, char& character, size_t& num_bytes) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {{
      {"&amp;", '&'},
      {"&lt;", '<'},
      {"&gt;", '>'},
      {"&quot;", '"'},
      {"&apos;", '\''},
  }};
  for (const auto& [spelling, value] : kEntities) {
    if (text.starts_with(spelling)) {
      character = value;
      num_bytes = spelling.size();
      return LexResult::kTag;
    }
    if (spelling.starts_with(text)) return LexResult::kPartial;
  }
  return LexResult::kNone;
}

}  // namespace tandem::v4
