#include "model/families/deepseek_v4/json_text.h"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"

namespace tandem::v4 {
namespace {

constexpr std::array<char, 16> kHex = {'0', '1', '2', '3', '4', '5', '6', '7',
                                       '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};

/// A string token: its source between the quotes, and what it means. Lone surrogates have no UTF-8
/// form; they become U+FFFD in `decoded` and stay escapes in `escaped`.
struct StringToken {
  std::string_view source;
  std::string decoded;
  std::string escaped;
};

/// Reads one document, validating, and writes it anew as it goes. Recursion is bounded by
/// kJsonDepthMax.
class Rewriter {
 public:
  Rewriter(std::string_view text, JsonStyle style) : text_(text), style_(style) {}

  Status begin() {
    TANDEM_REQUIRE(
        text_.size() <= kJsonBytesMax,
        str_cat("JSON has ", text_.size(), " bytes; the limit is ", kJsonBytesMax));
    skip_space();
    return {};
  }

  Status end() {
    skip_space();
    if (pos_ != text_.size()) return error("text after the value");
    return {};
  }

  bool next_is(char c) const { return pos_ < text_.size() && text_[pos_] == c; }

  Status value(std::string& out) {
    if (pos_ == text_.size()) return error("a value is missing");
    switch (text_[pos_]) {
      case '{': return container('}', out, [this, &out] { return member(out); });
      case '[': return container(']', out, [this, &out] { return value(out); });
      case '"': {
        TANDEM_TRY_ASSIGN(const StringToken token, string());
        write_string(token, out);
        return {};
      }
      case 't': return literal("true", out);
      case 'f': return literal("false", out);
      case 'n': return literal("null", out);
      default: return number(out);
    }
  }

  /// Walks the object or array at the cursor, calling `item` at the start of each item. `out` gets
  /// the brackets and commas.
  template <class Item>
  Status container(char close, std::string& out, Item item) {
    if (++depth_ > kJsonDepthMax) return error("nested too deep");
    out += text_[pos_++];
    skip_space();
    for (bool first = true; !next_is(close); first = false) {
      if (!first) {
        if (!next_is(',')) return error("a comma or a closing bracket is missing");
        ++pos_;
        out += style_ == JsonStyle::kPython ? ", " : ",";
        skip_space();
      }
      TANDEM_TRY(item());
      skip_space();
    }
    out += text_[pos_++];
    --depth_;
    return {};
  }

  Result<StringToken> key() {
    TANDEM_TRY_ASSIGN(StringToken token, string());
    skip_space();
    if (!next_is(':')) return error("a colon is missing");
    ++pos_;
    skip_space();
    return token;
  }

  Result<StringToken> string();

 private:
  Status error(std::string_view what) const {
    return invalid_argument(str_cat("JSON byte ", pos_, ": ", what));
  }

  void skip_space() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' ||
                                   text_[pos_] == '\r' || text_[pos_] == '\t')) {
      ++pos_;
    }
  }

  Status member(std::string& out) {
    TANDEM_TRY_ASSIGN(const StringToken token, key());
    write_string(token, out);
    out += style_ == JsonStyle::kPython ? ": " : ":";
    return value(out);
  }

  void write_string(const StringToken& token, std::string& out) const {
    out += '"';
    out += style_ == JsonStyle::kPython ? std::string_view(token.escaped) : token.source;
    out += '"';
  }

  Status literal(std::string_view word, std::string& out) {
    if (text_.substr(pos_, word.size()) != word) return error("unknown word");
    pos_ += word.size();
    out += word;
    return {};
  }

  bool digits() {
    const size_t start = pos_;
    while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') ++pos_;
    return pos_ > start;
  }

  Status number(std::string& out);
  Status escape(StringToken& token);
  Result<uint32_t> hex4();

  std::string_view text_;
  JsonStyle style_;
  size_t pos_ = 0;
  int depth_ = 0;
};

Status Rewriter::number(std::string& out) {
  const size_t start = pos_;
  if (next_is('-')) ++pos_;
  if (next_is('0')) {
    ++pos_;
  } else if (!digits()) {
    return error("not a value");
  }
  if (next_is('.')) {
    ++pos_;
    if (!digits()) return error("a digit is missing");
  }
  if (next_is('e') || next_is('E')) {
    ++pos_;
    if (next_is('+') || next_is('-')) ++pos_;
    if (!digits()) return error("a digit is missing");
  }
  out += text_.substr(start, pos_ - start);
  return {};
}

Result<StringToken> Rewriter::string() {
  if (!next_is('"')) return error("a string is missing");
  const size_t start = ++pos_;
  StringToken token;
  while (true) {
    const size_t run = pos_;
    while (pos_ < text_.size() && text_[pos_] != '"' && text_[pos_] != '\\' &&
           static_cast<unsigned char>(text_[pos_]) >= 0x20) {
      ++pos_;
    }
    const std::string_view plain = text_.substr(run, pos_ - run);
    token.decoded += plain;
    token.escaped += plain;
    if (pos_ == text_.size()) return error("a string does not end");
    if (text_[pos_] == '"') break;
    if (text_[pos_] != '\\') return error("a control character in a string");
    TANDEM_TRY(escape(token));
  }
  token.source = text_.substr(start, pos_ - start);
  if (find_invalid_utf8(token.source).has_value()) return error("a string is not UTF-8");
  ++pos_;
  return token;
}

Result<uint32_t> Rewriter::hex4() {
  if (text_.size() - pos_ < 4) return error("a \\u escape is cut");
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = text_[pos_];
    const bool digit = c >= '0' && c <= '9';
    const char lower = static_cast<char>(c | 0x20);
    if (!digit && !(lower >= 'a' && lower <= 'f')) return error("not a hexadecimal digit");
    code = code << 4 | static_cast<uint32_t>(digit ? c - '0' : lower - 'a' + 10);
    ++pos_;
  }
  return code;
}

Status Rewriter::escape(StringToken& token) {
  ++pos_;
  if (pos_ == text_.size()) return error("an escape is cut");
  uint32_t code = 0;
  switch (text_[pos_++]) {
    case '"': code = '"'; break;
    case '\\': code = '\\'; break;
    case '/': code = '/'; break;
    case 'b': code = '\b'; break;
    case 'f': code = '\f'; break;
    case 'n': code = '\n'; break;
    case 'r': code = '\r'; break;
    case 't': code = '\t'; break;
    case 'u': {
      TANDEM_TRY_ASSIGN(code, hex4());
      if (code >= 0xD800 && code < 0xDC00 && text_.substr(pos_, 2) == "\\u") {
        const size_t second_pos = pos_;
        pos_ += 2;
        TANDEM_TRY_ASSIGN(const uint32_t second, hex4());
        if (second >= 0xDC00 && second < 0xE000) {
          code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
        } else {
          pos_ = second_pos;  // two escapes that do not pair
        }
      }
      break;
    }
    default: --pos_; return error("unknown escape");
  }
  if (code >= 0xD800 && code < 0xE000) {
    append_utf8(0xFFFD, token.decoded);
    token.escaped += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) token.escaped += kHex[code >> shift & 0xF];
    return {};
  }
  std::string character;
  append_utf8(code, character);
  token.decoded += character;
  append_json_escaped(character, token.escaped);
  return {};
}

}  // namespace

Result<std::string> respace_json(std::string_view text, JsonStyle style) {
  Rewriter rewriter(text, style);
  std::string out;
  TANDEM_TRY(rewriter.begin());
  TANDEM_TRY(rewriter.value(out));
  TANDEM_TRY(rewriter.end());
  return out;
}

Result<std::vector<JsonMember>> json_members(std::string_view text, JsonStyle style) {
  Rewriter rewriter(text, style);
  TANDEM_TRY(rewriter.begin());
  TANDEM_REQUIRE(rewriter.next_is('{'), "JSON: not an object");
  std::vector<JsonMember> members;
  std::unordered_map<std::string, size_t> places;
  std::string brackets;
  const auto read_member = [&]() -> Status {
    TANDEM_TRY_ASSIGN(StringToken key, rewriter.key());
    JsonMember member;
    member.key = std::move(key.decoded);
    member.is_string = rewriter.next_is('"');
    if (member.is_string) {
      TANDEM_TRY_ASSIGN(StringToken token, rewriter.string());
      member.value = std::move(token.decoded);
    } else {
      TANDEM_TRY(rewriter.value(member.value));
    }
    const auto [place, is_new] = places.emplace(member.key, members.size());
    if (is_new) {
      members.push_back(std::move(member));
    } else {
      members[place->second] = std::move(member);
    }
    return {};
  };
  TANDEM_TRY(rewriter.container('}', brackets, read_member));
  TANDEM_TRY(rewriter.end());
  return members;
}

Result<std::vector<std::string>> json_items(std::string_view text, JsonStyle style) {
  Rewriter rewriter(text, style);
  TANDEM_TRY(rewriter.begin());
  TANDEM_REQUIRE(rewriter.next_is('['), "JSON: not an array");
  std::vector<std::string> items;
  std::string brackets;
  TANDEM_TRY(rewriter.container(
      ']', brackets, [&]() -> Status { return rewriter.value(items.emplace_back()); }));
  TANDEM_TRY(rewriter.end());
  return items;
}

void append_json_escaped(std::string_view text, std::string& out) {
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out += text.substr(start, i - start);
    start = i + 1;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        out += "\\u00";
        out += kHex[c >> 4];
        out += kHex[c & 0xF];
    }
  }
  out += text.substr(start);
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(text, out);
  out += '"';
  return out;
}

}  // namespace tandem::v4
