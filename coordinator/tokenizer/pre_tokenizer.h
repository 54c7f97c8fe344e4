#pragma once

#include <optional>
#include <string_view>

#include "coordinator/tokenizer/unicode_class.h"

namespace tandem {

/// Rules that cut text into the pieces inside which merges happen.
enum class PreTokenizer {
  kDeepSeekV3,  // of DeepSeek V3, V4 and V4.1
};

/// The rules that a GGUF's `tokenizer.ggml.pre` names, if known.
std::optional<PreTokenizer> pre_tokenizer_by_name(std::string_view name);

/// Cuts well-formed UTF-8 into pieces as three "isolated" splits in sequence do: matches and the
/// text between matches both stay pieces, and each pattern sees the pieces of the one before as
/// whole texts.
///   1. \p{N}{1,3}
///   2. [U+4E00-U+9FA5 U+3040-U+309F U+30A0-U+30FF]+
///   3. the first of these that matches at a place, in this order:
///      one of the 32 ASCII punctuation characters and then [A-Za-z]+;
///      [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+;  " "?[\p{P}\p{S}]+[\r\n]*;
///      \s*[\r\n]+;  \s+(?!\S);  \s+
/// The splitter borrows the text.
/// Threads: one owner. Cost: a few passes over the text, whatever it holds.
/// Source: the pre_tokenizer of the official tokenizer.json.
class PieceSplitter {
 public:
  explicit PieceSplitter(std::string_view text)
      : classes_(CharClassTable::get()), rest_(text.data()), end_(text.data() + text.size()) {}

  /// Sets `piece` to the next piece, never empty; false at the end.
  bool next(std::string_view& piece);

 private:
  struct Char {
    uint8_t bits = 0;
    uint8_t num_bytes = 0;  // 0: past the end
  };
  Char char_at(const char* at, const char* end) const;
  const char* skip(const char* at, const char* end, uint8_t any_of) const;
  const char* digits_end() const;
  const char* segment_end() const;
  const char* match_end(const char* at) const;
  const char* space_match_end(const char* at) const;

  const CharClassTable& classes_;
  const char* rest_;                   // start of what has not been handed out
  const char* end_;                    // of the text
  const char* segment_end_ = nullptr;  // of the piece that the third split is working on
  const char* pending_end_ = nullptr;  // of a match found while an unmatched run was handed out
};

}  // namespace tandem
