#include "coordinator/tokenizer/pre_tokenizer.h"

#include "base/utf8.h"

namespace tandem {

std::optional<PreTokenizer> pre_tokenizer_by_name(std::string_view name) {
  if (name == "joyai-llm" || name == "deepseek-v3") return PreTokenizer::kDeepSeekV3;
  return std::nullopt;
}

inline PieceSplitter::Char PieceSplitter::char_at(const char* at, const char* end) const {
  if (at == end) return {};
  const auto lead = static_cast<uint8_t>(*at);
  if (lead < 0x80) return {classes_.ascii(lead), 1};
  const Utf8Char c = utf8_front({at, static_cast<size_t>(end - at)});
  return {classes_[c.code_point], static_cast<uint8_t>(c.num_bytes)};
}

inline const char* PieceSplitter::skip(const char* at, const char* end, uint8_t any_of) const {
  for (Char c = char_at(at, end); (c.bits & any_of) != 0; c = char_at(at, end)) at += c.num_bytes;
  return at;
}

const char* PieceSplitter::digits_end() const {
  const char* at = rest_;
  for (int num_digits = 0; num_digits < 3; ++num_digits) {
    const Char c = char_at(at, end_);
    if ((c.bits & kNumber) == 0) break;
    at += c.num_bytes;
  }
  return at;
}

// The first two splits, whose sets have no character in common: a run of ideographs, or everything
// up to a number or an ideograph. rest_ is at no number.
const char* PieceSplitter::segment_end() const {
  if ((char_at(rest_, end_).bits & kIdeograph) != 0) return skip(rest_, end_, kIdeograph);
  const char* at = rest_;
  for (Char c = char_at(at, end_); c.num_bytes != 0 && (c.bits & (kNumber | kIdeograph)) == 0;
       c = char_at(at, end_)) {
    at += c.num_bytes;
  }
  return at;
}

// `at` is at white space that neither a letter nor punctuation has claimed: the last three
// alternatives.
const char* PieceSplitter::space_match_end(const char* at) const {
  const char* run_end = at;
  const char* last_start = at;          // of the run's last character
  const char* after_newline = nullptr;  // \s*[\r\n]+ gives back what follows the last newline
  for (Char c = char_at(at, segment_end_); (c.bits & kSpace) != 0;
       c = char_at(run_end, segment_end_)) {
    last_start = run_end;
    run_end += c.num_bytes;
    if ((c.bits & kNewline) != 0) after_newline = run_end;
  }
  if (after_newline != nullptr) return after_newline;
  if (run_end == segment_end_) return run_end;
  // Something else follows: \s+(?!\S) gives back one character, if that leaves any.
  return last_start == at ? run_end : last_start;
}

// End of the third split's match at `at`, or nullptr.
const char* PieceSplitter::match_end(const char* at) const {
  const Char first = char_at(at, segment_end_);
  const char* const second_at = at + first.num_bytes;
  const Char second = char_at(second_at, segment_end_);
  if ((first.bits & kPunctuation) != 0) {
    if (first.num_bytes == 1 && (second.bits & kAsciiLetter) != 0) {
      return skip(second_at, segment_end_, kAsciiLetter);
    }
    return skip(skip(second_at, segment_end_, kPunctuation), segment_end_, kNewline);
  }
  if ((first.bits & (kLetter | kMark)) != 0) {
    return skip(second_at, segment_end_, kLetter | kMark);
  }
  if ((first.bits & kNewline) == 0 && (second.bits & (kLetter | kMark)) != 0) {
    return skip(second_at, segment_end_, kLetter | kMark);
  }
  if (*at == ' ' && (second.bits & kPunctuation) != 0) {
    return skip(skip(second_at, segment_end_, kPunctuation), segment_end_, kNewline);
  }
  if ((first.bits & kSpace) != 0) return space_match_end(at);
  return nullptr;
}

bool PieceSplitter::next(std::string_view& piece) {
  const auto hand_out = [&](const char* piece_end) {
    piece = {rest_, static_cast<size_t>(piece_end - rest_)};
    rest_ = piece_end;
    return true;
  };
  if (pending_end_ != nullptr) {
    const char* const piece_end = pending_end_;
    pending_end_ = nullptr;
    return hand_out(piece_end);
  }
  if (rest_ == end_) return false;
  if (segment_end_ == nullptr || rest_ == segment_end_) {
    // No alternative of the third split matches in a piece of numbers only.
    if ((char_at(rest_, end_).bits & kNumber) != 0) {
      segment_end_ = nullptr;
      return hand_out(digits_end());
    }
    segment_end_ = segment_end();
  }
  const char* at = rest_;
  for (; at != segment_end_; at += char_at(at, segment_end_).num_bytes) {
    const char* const piece_end = match_end(at);
    if (piece_end == nullptr) continue;
    if (at == rest_) return hand_out(piece_end);
    pending_end_ = piece_end;
    break;
  }
  return hand_out(at);
}

}  // namespace tandem
