#include "model/families/deepseek_v4/output_parser.h"

#include <algorithm>

#include "base/check.h"
#include "model/families/deepseek_v4/dsml_tag.h"
#include "model/families/deepseek_v4/event_list.h"
#include "model/families/deepseek_v4/markers.h"

namespace tandem::v4 {
namespace {

using Name = DsmlTag::Name;

/// The opening that `tag` makes in content, or nothing.
std::optional<BlockOpening> opening_of(const DsmlTag& tag) {
  if (tag.closing) return std::nullopt;
  if (tag.name == Name::kBlock) {
    return tag.has_marker ? BlockOpening::kMarked : BlockOpening::kPlain;
  }
  if (!tag.has_marker) return std::nullopt;
  return tag.name == Name::kInvoke ? BlockOpening::kBareCall : BlockOpening::kMisspelled;
}

}  // namespace

void OutputParser::push(std::string_view bytes, std::vector<Event>& out) {
  if (place_ == Place::kComplete) return;
  buffer_ += bytes;
  while (step(out) == Step::kGo) {
  }
  if (place_ == Place::kBlock || place_ == Place::kHeldBlock) return;
  buffer_.erase(0, pos_);
  scanned_ -= std::min(scanned_, pos_);
  pos_ = 0;
}

bool OutputParser::is_read_here(std::string_view spelling) const {
  switch (place_) {
    case Place::kStart:
      if (spelling == kThinkClose) return options_.starts_in_reasoning;
      return spelling == kThinkOpen || (options_.tools_active && spelling == kDsml);
    case Place::kReasoning:
      return spelling == kThinkClose || (options_.tools_active && spelling == kDsml);
    case Place::kContent: return options_.tools_active && spelling == kDsml;
    // Of a tag, or of an argument, which may well hold what looks like a special token.
    case Place::kHeldBlock:
    case Place::kBlock: return true;
    case Place::kRest: return spelling == kDsml;  // of the text that could not be read
    case Place::kComplete: return false;
  }
  TANDEM_UNREACHABLE();
}

void OutputParser::push_control(std::string_view spelling, std::vector<Event>& out) {
  if (is_read_here(spelling)) push(spelling, out);
}

OutputParser::Step OutputParser::step(std::vector<Event>& out) {
  switch (place_) {
    case Place::kStart: return start(out);
    case Place::kReasoning:
    case Place::kContent: return scan(out);
    case Place::kHeldBlock: return held_block(out);
    case Place::kBlock: return block(out);
    case Place::kRest: emit_until(buffer_.size(), out); return Step::kWait;
    case Place::kComplete: return Step::kWait;
  }
  TANDEM_UNREACHABLE();
}

OutputParser::Step OutputParser::start(std::vector<Event>& out) {
  const std::string_view head = std::string_view(buffer_).substr(0, kThinkOpen.size());
  if (head.size() < kThinkOpen.size() && kThinkOpen.starts_with(head)) return Step::kWait;
  const bool opens = head == kThinkOpen;
  if (opens) pos_ = scanned_ = kThinkOpen.size();
  enter(opens || options_.starts_in_reasoning ? Place::kReasoning : Place::kContent, out);
  return Step::kGo;
}

OutputParser::Step OutputParser::scan(std::vector<Event>& out) {
  if (place_ == Place::kContent && !options_.tools_active) {
    emit_until(buffer_.size(), out);
    return Step::kWait;
  }
  // A tag starts with '<', or in content with the first byte of its bar where the '<' was lost.
  const char* const starts = place_ == Place::kContent ? "<\xEF" : "<";
  const size_t candidate = std::min(buffer_.find_first_of(starts, scanned_), buffer_.size());
  scanned_ = candidate;
  size_t text_end = candidate;
  if (options_.tools_active) {
    while (text_end > pos_ && candidate - text_end < kSeparatorBytesMax &&
           is_dsml_space(buffer_[text_end - 1])) {
      --text_end;
    }
  }
  emit_until(text_end, out);
  return candidate == buffer_.size() ? Step::kWait : at_candidate(out);
}

OutputParser::Step OutputParser::at_candidate(std::vector<Event>& out) {
  const std::string_view rest = std::string_view(buffer_).substr(scanned_);
  const bool is_closing = rest.starts_with("</");
  if (place_ == Place::kReasoning && (is_closing || !options_.tools_active)) {
    if (rest.starts_with(kThinkClose)) {
      emit_until(scanned_, out);
      pos_ = scanned_ = scanned_ + kThinkClose.size();
      enter(Place::kContent, out);
      return Step::kGo;
    }
    if (kThinkClose.starts_with(rest)) return Step::kWait;
    ++scanned_;
    return Step::kGo;
  }
  // The end of reasoning counts wherever it stands, so a tag must be whole before it.
  const std::string_view window = rest.substr(0, kTagBytesMax);
  const size_t close = place_ == Place::kReasoning ? window.find(kThinkClose) : window.npos;
  DsmlTag tag;
  const LexResult result = lex_dsml_tag(window.substr(0, close), tag);
  if (result == LexResult::kPartial && close == window.npos) return Step::kWait;
  if (result == LexResult::kTag) {
    const auto opening = opening_of(tag);
    // Reasoning may talk about tags: only a proper opener can be a forgotten end of reasoning.
    if (opening &&
        (place_ == Place::kContent || (tag.exact && *opening != BlockOpening::kMisspelled))) {
      return begin_block(*opening, tag.num_bytes);
    }
    if (place_ == Place::kContent && tag.closing && tag.has_marker) {
      emit_until(scanned_, out);
      pos_ = scanned_ = scanned_ + tag.num_bytes;
      return Step::kGo;
    }
  }
  ++scanned_;
  return Step::kGo;
}

OutputParser::Step OutputParser::begin_block(BlockOpening opening, size_t num_opener_bytes) {
  const bool is_held = place_ == Place::kReasoning;
  const size_t opener = scanned_ - pos_;
  scanned_ = opener + num_opener_bytes;  // where scanning goes on if this is no block
  const size_t start = opening == BlockOpening::kBareCall ? opener : scanned_;
  buffer_.erase(0, pos_);
  pos_ = 0;
  think_scanned_ = 0;
  held_.clear();
  block_.emplace(opening, start, is_held);
  place_ = is_held ? Place::kHeldBlock : Place::kBlock;
  return Step::kGo;
}

std::string_view OutputParser::block_text() const {
  return std::string_view(buffer_).substr(0, kToolBlockBytesMax);
}

OutputParser::Step OutputParser::block(std::vector<Event>& out) {
  // Reported once per block, before its first event: text that is held back comes first.
  flush_text(out);
  DsmlBlockParser::State state = block_->advance(block_text(), out);
  if (state == DsmlBlockParser::State::kRunning && buffer_.size() > kToolBlockBytesMax) {
    state = block_->fail("the tool block is too long", out);
  }
  switch (state) {
    case DsmlBlockParser::State::kRunning: return Step::kWait;
    case DsmlBlockParser::State::kDone: complete(out); return Step::kWait;
    case DsmlBlockParser::State::kNotABlock: release(Place::kContent, scanned_); return Step::kGo;
    case DsmlBlockParser::State::kFailed: report_error(block_->error(), out); return Step::kGo;
  }
  TANDEM_UNREACHABLE();
}

OutputParser::Step OutputParser::held_block(std::vector<Event>& out) {
  const size_t close = buffer_.find(kThinkClose, think_scanned_);
  if (close != std::string::npos) {
    emit_until(close, out);
    release(Place::kReasoning, close);
    return Step::kGo;
  }
  think_scanned_ = buffer_.size() - std::min(buffer_.size(), kThinkClose.size() - 1);
  const DsmlBlockParser::State state = block_->advance(block_text(), held_);
  switch (state) {
    case DsmlBlockParser::State::kRunning: {
      if (buffer_.size() <= kToolBlockBytesMax) return Step::kWait;
      release(Place::kReasoning, kToolBlockBytesMax);
      return Step::kGo;
    }
    case DsmlBlockParser::State::kDone: {
      size_t next = block_->end();
      while (next < buffer_.size() && is_dsml_space(buffer_[next])) ++next;
      if (kThinkClose.starts_with(std::string_view(buffer_).substr(next))) return Step::kWait;
      release(Place::kReasoning, block_->end());
      return Step::kGo;
    }
    case DsmlBlockParser::State::kNotABlock:
    case DsmlBlockParser::State::kFailed:
      release(Place::kReasoning, std::max(scanned_, block_->pos()));
      return Step::kGo;
  }
  TANDEM_UNREACHABLE();
}

void OutputParser::finish(std::vector<Event>& out) {
  if (place_ == Place::kStart) {
    enter(options_.starts_in_reasoning ? Place::kReasoning : Place::kContent, out);
  }
  switch (place_) {
    case Place::kContent:
      if (options_.tools_active && shows_marker(std::string_view(buffer_).substr(scanned_))) {
        report_error("the answer ends inside a tag", out);
      }
      break;
    case Place::kBlock: {
      const DsmlBlockParser::State state = block_->finish(out);
      if (state == DsmlBlockParser::State::kDone) return complete(out);
      if (state == DsmlBlockParser::State::kFailed) {
        report_error(block_->error(), out);
      } else {
        release(Place::kContent, 0);
      }
      break;
    }
    case Place::kHeldBlock: finish_held(out); break;
    default: break;
  }
  if (place_ == Place::kComplete) return;
  emit_until(buffer_.size(), out);
  flush_text(out);
  buffer_.clear();
  pos_ = scanned_ = 0;
  place_ = Place::kRest;
}

void OutputParser::finish_held(std::vector<Event>& out) {
  const DsmlBlockParser::State state = block_->finish(held_);
  if (state == DsmlBlockParser::State::kDone) {
    flush_text(out);
    out.insert(out.end(), held_.begin(), held_.end());
    complete(out);
  } else if (state == DsmlBlockParser::State::kFailed && block_->num_calls() > 0) {
    flush_text(out);
    out.insert(out.end(), held_.begin(), held_.end());
    report_error(block_->error(), out);
  } else {
    place_ = Place::kReasoning;
  }
}

bool OutputParser::in_structure() const {
  return place_ == Place::kBlock && block_->in_structure();
}

void OutputParser::complete(std::vector<Event>& out) {
  out.push_back({Event::Kind::kToolBlockEnd, buffer_.substr(0, block_->end()), 0});
  block_.reset();
  held_.clear();
  buffer_.clear();
  buffer_.shrink_to_fit();
  pos_ = scanned_ = 0;
  place_ = Place::kComplete;
}

void OutputParser::report_error(std::string_view message, std::vector<Event>& out) {
  flush_text(out);
  out.push_back({Event::Kind::kParseError, std::string(message), 0});
  block_.reset();
  place_ = Place::kRest;
}

void OutputParser::release(Place place, size_t resume) {
  block_.reset();
  held_.clear();
  place_ = place;
  scanned_ = resume;
}

void OutputParser::enter(Place place, std::vector<Event>& out) {
  flush_text(out);
  place_ = place;
}

void OutputParser::emit_until(size_t end, std::vector<Event>& out) {
  std::string text;
  repair_.push(std::string_view(buffer_).substr(pos_, end - pos_), text);
  pos_ = end;
  add_event_text(in_reasoning() ? Event::Kind::kReasoning : Event::Kind::kContent, text, 0, out);
}

void OutputParser::flush_text(std::vector<Event>& out) {
  std::string text;
  repair_.finish(text);
  add_event_text(in_reasoning() ? Event::Kind::kReasoning : Event::Kind::kContent, text, 0, out);
}

std::vector<Event> parse_output(std::string_view text, const ParserOptions& options) {
  OutputParser parser(options);
  std::vector<Event> out;
  parser.push(text, out);
  parser.finish(out);
  return out;
}

}  // namespace tandem::v4
