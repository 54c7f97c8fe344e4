#include "api/responses/custom_input.h"

#include "api/json/json.h"
#include "base/utf8.h"

namespace tandem::api {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

enum class Match { kYes, kNo, kMore };

/// Whether `json` is `{"input":"` with any space between its parts.
Match match_start(std::string_view json) {
  constexpr std::string_view kParts[] = {"{", "\"input\"", ":", "\""};
  size_t at = 0;
  for (const std::string_view part : kParts) {
    while (at < json.size() && is_space(json[at])) ++at;
    const std::string_view there = json.substr(at, part.size());
    if (!part.starts_with(there)) return Match::kNo;
    if (there.size() < part.size()) return Match::kMore;
    at += part.size();
  }
  return at == json.size() ? Match::kYes : Match::kNo;
}

char unescaped(char c) {
  switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return c;
  }
}

uint32_t hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint32_t>(c - 'A' + 10);
  return 0;
}

}  // namespace

void CustomInput::push(std::string_view json, std::string& out) {
  for (const char c : json) push_byte(c, out);
}

void CustomInput::push_unit(uint32_t unit, std::string& out) {
  const bool is_low = unit >= 0xDC00 && unit < 0xE000;
  if (high_ != 0 && is_low) {
    append_utf8(0x10000 + ((high_ - 0xD800) << 10) + (unit - 0xDC00), out);
    high_ = 0;
    state_ = State::kText;
    return;
  }
  if (high_ != 0) out += kReplacement;
  high_ = 0;
  state_ = State::kText;
  if (unit >= 0xD800 && unit < 0xDC00) {
    high_ = unit;
    state_ = State::kAfterHigh;
  } else if (is_low) {
    out += kReplacement;
  } else {
    append_utf8(unit, out);
  }
}

void CustomInput::push_byte(char c, std::string& out) {
  switch (state_) {
    case State::kStart: {
      pending_ += c;
      const Match match = match_start(pending_);
      if (match == Match::kNo) state_ = State::kOther;
      if (match != Match::kYes) return;
      pending_.clear();
      state_ = State::kText;
      return;
    }
    case State::kOther: pending_ += c; return;
    case State::kDone: return;
    case State::kAfterHigh:
      if (c == '\\') {
        state_ = State::kHighEscape;
        return;
      }
      out += kReplacement;
      high_ = 0;
      state_ = State::kText;
      return push_byte(c, out);
    case State::kHighEscape:
      if (c != 'u') {
        out += kReplacement;
        high_ = 0;
      }
      state_ = State::kEscape;
      return push_byte(c, out);
    case State::kText:
      if (c == '"') {
        state_ = State::kDone;
      } else if (c == '\\') {
        state_ = State::kEscape;
      } else {
        out += c;
      }
      return;
    case State::kEscape:
      if (c == 'u') {
        unit_ = 0;
        num_digits_ = 0;
        state_ = State::kHex;
        return;
      }
      out += unescaped(c);
      state_ = State::kText;
      return;
    case State::kHex:
      unit_ = unit_ << 4 | hex_digit(c);
      if (++num_digits_ == 4) push_unit(unit_, out);
      return;
  }
}

void CustomInput::finish(std::string& out) {
  if (high_ != 0) out += kReplacement;
  high_ = 0;
  if (state_ != State::kStart && state_ != State::kOther) return;
  const Json parsed = Json::parse(pending_, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_object()) {
    const auto named = parsed.find("input");
    const auto member = named != parsed.end() ? named : parsed.begin();
    const bool counts = named != parsed.end() || parsed.size() == 1;
    if (counts && member->is_string()) {
      out += member->get_ref<const std::string&>();
      return;
    }
  }
  out += pending_;
}

std::string custom_input(std::string_view arguments) {
  CustomInput reader;
  std::string out;
  reader.push(arguments, out);
  reader.finish(out);
  return out;
}

}  // namespace tandem::api
