#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/tokenizer/tokenizer.h"

namespace tandem::test {

/// The nano model's vocabulary (8,192 tokens), from tests/golden.
std::shared_ptr<const Tokenizer> nano_tokenizer();

/// A vocabulary that owns its texts: the 256 bytes as ids 0 to 255, then what a test adds.
struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  std::vector<int32_t> token_types;
  std::string pre = "deepseek-v3";

  Vocabulary();
  /// Adds a token; `text` is byte-level or, for types 3 and 4, literal.
  int32_t add(const std::string& text, int32_t type = 1);
  /// Adds a merge and its result.
  int32_t merge(const std::string& left, const std::string& right);
  /// Views of this object.
  VocabularySource source() const;
};

std::vector<int32_t> encode_text(const Tokenizer& tokenizer, std::string_view text);
std::vector<int32_t> encode_raw(const Tokenizer& tokenizer, std::string_view text);

}  // namespace tandem::test
