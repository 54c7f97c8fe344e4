#include "model/families/deepseek_v4/dsml_block_parser.h"

#include <algorithm>

#include "base/check.h"
#include "model/families/deepseek_v4/event_list.h"
#include "model/families/deepseek_v4/json_text.h"
#include "model/families/deepseek_v4/markers.h"

namespace tandem::v4 {

using Name = DsmlTag::Name;

DsmlBlockParser::State DsmlBlockParser::advance(std::string_view text, std::vector<Event>& out) {
  text_ = text;
  while (state_ == State::kRunning && step(out) == Step::kGo) {
  }
  update_structure();
  text_ = {};
  return state_;
}

DsmlBlockParser::State DsmlBlockParser::finish(std::vector<Event>& out) {
  if (state_ != State::kRunning) return state_;
  if (opening_ == BlockOpening::kBareCall && num_calls_ > 0 && !in_call_) {
    return state_ = State::kDone;
  }
  if (opening_ == BlockOpening::kPlain && num_calls_ == 0) return state_ = State::kNotABlock;
  return fail("the tool block does not end", out);
}

DsmlBlockParser::State DsmlBlockParser::fail(std::string_view message, std::vector<Event>& out) {
  if (in_call_) {
    if (place_ == Place::kString) end_string(out);
    end_call(out);
  }
  error_ = message;
  in_structure_ = false;
  return state_ = State::kFailed;
}

DsmlBlockParser::Step DsmlBlockParser::failed(std::string_view message, std::vector<Event>& out) {
  fail(message, out);
  return Step::kWait;
}

DsmlBlockParser::Step DsmlBlockParser::step(std::vector<Event>& out) {
  if (pos_ == text_.size()) return Step::kWait;
  switch (place_) {
    case Place::kCalls: return between_calls(out);
    case Place::kParameters: return between_parameters(out);
    case Place::kValueStart: return value_start(out);
    case Place::kString: return string_value(out);
    case Place::kJson: return json_value(out);
  }
  TANDEM_UNREACHABLE();
}

DsmlBlockParser::Step DsmlBlockParser::between_calls(std::vector<Event>& out) {
  skip_space();
  if (pos_ == text_.size()) return Step::kWait;
  DsmlTag tag;
  const LexResult result = lex_dsml_tag(text_.substr(pos_), tag);
  if (result == LexResult::kPartial) return Step::kWait;
  const bool is_tag = result == LexResult::kTag;
  if (is_tag && tag.opens(Name::kInvoke)) return begin_call(tag, out);
  if (num_calls_ == 0) return not_confirmed(is_tag && (tag.has_marker || tag.closing), out);
  if (is_tag && tag.closes(Name::kBlock)) {
    pos_ += tag.num_bytes;
    end_ = pos_;
    state_ = State::kDone;
    return Step::kWait;
  }
  if (opening_ == BlockOpening::kBareCall) {  // the answer goes on after whole calls
    state_ = State::kDone;
    return Step::kWait;
  }
  if (is_tag && tag.has_marker) return failed("unexpected tag between calls", out);
  return stray("unexpected text between calls", out);
}

DsmlBlockParser::Step DsmlBlockParser::not_confirmed(bool at_other_tag, std::vector<Event>& out) {
  if (opening_ == BlockOpening::kPlain) {
    state_ = State::kNotABlock;
    return Step::kWait;
  }
  if (opening_ == BlockOpening::kMarked) {
    constexpr std::string_view kNoCall = "the tool block has no call";
    return at_other_tag ? failed(kNoCall, out) : stray(kNoCall, out);
  }
  return failed("a tag with the DSML marker begins no tool block", out);
}

DsmlBlockParser::Step DsmlBlockParser::begin_call(const DsmlTag& tag, std::vector<Event>& out) {
  if (!tag.name_attribute || tag.name_attribute->empty()) return failed("a call has no name", out);
  if (num_calls_ == kToolCallsMax) return failed("too many calls", out);
  pos_ += tag.num_bytes;
  out.push_back({Event::Kind::kToolBegin, *tag.name_attribute, num_calls_++});
  in_call_ = true;
  is_first_.assign(1, true);
  add_arguments("{", out);
  place_ = Place::kParameters;
  return Step::kGo;
}

void DsmlBlockParser::end_call(std::vector<Event>& out) {
  add_arguments(std::string(is_first_.size(), '}'), out);
  is_first_.clear();
  out.push_back({Event::Kind::kToolEnd, {}, num_calls_ - 1});
  in_call_ = false;
  end_ = pos_;
  place_ = Place::kCalls;
}

DsmlBlockParser::Step DsmlBlockParser::between_parameters(std::vector<Event>& out) {
  skip_space();
  if (pos_ == text_.size()) return Step::kWait;
  DsmlTag tag;
  const LexResult result = lex_dsml_tag(text_.substr(pos_), tag);
  if (result == LexResult::kPartial) return Step::kWait;
  if (result == LexResult::kNone) return stray("unexpected text between parameters", out);
  if (tag.opens(Name::kParameter)) return begin_parameter(tag, out);
  if (tag.closes(Name::kParameter) && is_first_.size() > 1) {
    pos_ += tag.num_bytes;
    is_first_.pop_back();
    add_arguments("}", out);
    return Step::kGo;
  }
  if (tag.closes(Name::kInvoke)) {
    pos_ += tag.num_bytes;
    end_call(out);
    return Step::kGo;
  }
  if (tag.opens(Name::kInvoke) || tag.closes(Name::kBlock)) {  // the call's own closer is missing
    end_call(out);
    return Step::kGo;
  }
  // Skipping a second parameter closer would lose the text before it, which was part of the value.
  return failed("unexpected tag between parameters", out);
}

DsmlBlockParser::Step DsmlBlockParser::begin_parameter(
    const DsmlTag& tag, std::vector<Event>& out) {
  if (!tag.name_attribute) return failed("a parameter has no name", out);
  pos_ += tag.num_bytes;
  key_ = *tag.name_attribute;
  value_has_marker_ = tag.has_marker;
  value_start_ = pos_;
  in_json_string_ = false;
  after_backslash_ = false;
  if (!tag.string_attribute) {
    place_ = Place::kValueStart;
  } else if (*tag.string_attribute) {
    add_key(out);
    add_arguments("\"", out);
    place_ = Place::kString;
  } else {
    place_ = Place::kJson;
  }
  return Step::kGo;
}

DsmlBlockParser::Step DsmlBlockParser::value_start(std::vector<Event>& out) {
  size_t pos = pos_;
  while (pos < text_.size() && pos - pos_ < kSeparatorBytesMax && is_dsml_space(text_[pos])) ++pos;
  if (pos == text_.size()) return Step::kWait;
  DsmlTag tag;
  const LexResult result = lex_dsml_tag(text_.substr(pos), tag);
  if (result == LexResult::kPartial) return Step::kWait;
  add_key(out);
  if (result == LexResult::kTag && tag.opens(Name::kParameter)) {
    if (is_first_.size() == kParameterDepthMax) return failed("parameters nest too deep", out);
    pos_ = pos;
    add_arguments("{", out);
    is_first_.push_back(true);
    place_ = Place::kParameters;
  } else {
    add_arguments("\"", out);
    place_ = Place::kString;
  }
  return Step::kGo;
}

DsmlBlockParser::Step DsmlBlockParser::string_value(std::vector<Event>& out) {
  const auto add_text = [&](std::string_view bytes) {
    std::string text;
    repair_.push(bytes, text);
    std::string escaped;
    append_json_escaped(text, escaped);
    add_arguments(escaped, out);
  };
  const size_t special = std::min(text_.find_first_of("<&", pos_), text_.size());
  add_text(text_.substr(pos_, special - pos_));
  pos_ = special;
  if (pos_ == text_.size()) return Step::kWait;
  char character = text_[pos_];
  size_t num_bytes = 1;
  if (character == '&') {
    if (lex_entity(text_.substr(pos_), character, num_bytes) == LexResult::kPartial) {
      return Step::kWait;
    }
  } else {
    size_t closer_bytes = 0;
    const Answer answer = ends_value(/*in_json_string=*/false, closer_bytes);
    if (answer == Answer::kWait) return Step::kWait;
    if (answer == Answer::kYes) {
      end_string(out);
      pos_ += closer_bytes;
      place_ = Place::kParameters;
      return Step::kGo;
    }
  }
  add_text(std::string_view(&character, 1));
  pos_ += num_bytes;
  return Step::kGo;
}

void DsmlBlockParser::end_string(std::vector<Event>& out) {
  std::string text;
  repair_.finish(text);
  add_arguments(text + "\"", out);
}

DsmlBlockParser::Step DsmlBlockParser::json_value(std::vector<Event>& out) {
  for (; pos_ < text_.size(); ++pos_) {
    const char c = text_[pos_];
    if (after_backslash_) {
      after_backslash_ = false;
      if (c != '<') continue;  // a value cut after a backslash still ends
    }
    if (c == '"') {
      in_json_string_ = !in_json_string_;
    } else if (c == '\\') {
      after_backslash_ = in_json_string_;
    } else if (c == '<') {
      size_t closer_bytes = 0;
      const Answer answer = ends_value(in_json_string_, closer_bytes);
      if (answer == Answer::kWait) return Step::kWait;
      if (answer == Answer::kNo) continue;
      end_json(text_.substr(value_start_, pos_ - value_start_), out);
      pos_ += closer_bytes;
      place_ = Place::kParameters;
      return Step::kGo;
    }
  }
  return Step::kWait;
}

void DsmlBlockParser::end_json(std::string_view body, std::vector<Event>& out) {
  add_key(out);
  const std::string text = repair_utf8(body);
  if (text.find_first_not_of(" \n\t\r\f\v") == std::string::npos) {
    add_arguments("null", out);
    return;
  }
  const auto json = respace_json(text, JsonStyle::kCompact);
  add_arguments(json.ok() ? *json : json_string(text), out);
}

DsmlBlockParser::Answer DsmlBlockParser::ends_value(
    bool in_json_string, size_t& closer_bytes) const {
  const std::string_view rest = text_.substr(pos_);
  if (rest.size() == 1) return Answer::kWait;
  if (rest[1] != '/') return Answer::kNo;
  DsmlTag tag;
  const LexResult result = lex_dsml_tag(rest, tag);
  if (result == LexResult::kPartial) return Answer::kWait;
  if (result == LexResult::kNone) return Answer::kNo;
  const size_t after = pos_ + tag.num_bytes;
  if (tag.name == Name::kParameter) {
    closer_bytes = tag.num_bytes;
    const bool is_certain = !in_json_string && (tag.has_marker || !value_has_marker_);
    return is_certain ? Answer::kYes : continues_at(after, /*after_call=*/false);
  }
  if (tag.name == Name::kInvoke && tag.has_marker) {  // the parameter's own closer is missing
    closer_bytes = 0;
    return continues_at(after, /*after_call=*/true);
  }
  return Answer::kNo;
}

DsmlBlockParser::Answer DsmlBlockParser::continues_at(size_t pos, bool after_call) const {
  const size_t start = pos;
  while (pos < text_.size() && pos - start < kSeparatorBytesMax && is_dsml_space(text_[pos])) ++pos;
  if (pos == text_.size()) return Answer::kWait;
  DsmlTag tag;
  const LexResult result = lex_dsml_tag(text_.substr(pos), tag);
  if (result == LexResult::kPartial) return Answer::kWait;
  if (result == LexResult::kNone) return Answer::kNo;
  const bool continues = after_call ? tag.closes(Name::kBlock) || tag.opens(Name::kInvoke)
                                    : tag.opens(Name::kParameter) || tag.closes(Name::kInvoke) ||
                                          tag.closes(Name::kBlock) ||
                                          (tag.closes(Name::kParameter) && is_first_.size() > 1);
  return continues ? Answer::kYes : Answer::kNo;
}

DsmlBlockParser::Step DsmlBlockParser::stray(std::string_view what, std::vector<Event>& out) {
  if (num_stray_left_ == 0) return failed(what, out);
  --num_stray_left_;
  ++pos_;
  return Step::kGo;
}

void DsmlBlockParser::add_arguments(std::string_view json, std::vector<Event>& out) const {
  add_event_text(Event::Kind::kToolArguments, json, num_calls_ - 1, out);
}

void DsmlBlockParser::add_key(std::vector<Event>& out) {
  if (!is_first_.back()) add_arguments(",", out);
  is_first_.back() = false;
  add_arguments(json_string(key_) + ":", out);
}

void DsmlBlockParser::skip_space() {
  while (pos_ < text_.size() && is_dsml_space(text_[pos_])) ++pos_;
}

void DsmlBlockParser::update_structure() {
  if (state_ != State::kRunning) {
    in_structure_ = false;
    return;
  }
  // Two bytes of a possible closer already count: the tag is best finished greedily.
  const bool at_closer = text_.substr(pos_).starts_with("</");
  switch (place_) {
    case Place::kCalls:
    case Place::kParameters: in_structure_ = true; break;
    case Place::kValueStart:
    case Place::kString: in_structure_ = at_closer; break;
    case Place::kJson: in_structure_ = !in_json_string_; break;
  }
}

}  // namespace tandem::v4
