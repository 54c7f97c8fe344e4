#include "tests/coordinator/tokenizer/vocabularies.h"

#include "base/utf8.h"
#include "coordinator/tokenizer/byte_level.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {

std::shared_ptr<const Tokenizer> nano_tokenizer() {
  static const auto kTokenizer =
      Tokenizer::from_hf_json(read_text(golden_path("tokenizer/nano-tokenizer.json"))).value();
  return kTokenizer;
}

Vocabulary::Vocabulary() {
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(byte_to_code_point(static_cast<uint8_t>(byte)), text);
    add(text);
  }
}

int32_t Vocabulary::add(const std::string& text, int32_t type) {
  tokens.push_back(text);
  token_types.push_back(type);
  return static_cast<int32_t>(tokens.size()) - 1;
}

int32_t Vocabulary::merge(const std::string& left, const std::string& right) {
  merges.push_back(left + " " + right);
  return add(left + right);
}

VocabularySource Vocabulary::source() const {
  return {{tokens.begin(), tokens.end()}, {merges.begin(), merges.end()}, token_types, pre};
}

std::vector<int32_t> encode_text(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  EXPECT_OK(tokenizer.encode_text(text, ids));
  return ids;
}

std::vector<int32_t> encode_raw(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  EXPECT_OK(tokenizer.encode_raw(text, ids));
  return ids;
}

}  // namespace tandem::test
