// Arbitrary bytes as text to encode, as ids to decode and as a stream to repair.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "coordinator/tokenizer/byte_level.h"
#include "coordinator/tokenizer/stream_decoder.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace tandem {
namespace {

std::string byte_level(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) append_utf8(byte_to_code_point(static_cast<uint8_t>(c)), text);
  return text;
}

// All bytes, merges over what fuzzers like to produce, and two special tokens, one of which starts
// with the other.
std::shared_ptr<const Tokenizer> make_tokenizer() {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  std::vector<int32_t> types(256, 1);
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    tokens.push_back(byte_level({&c, 1}));
  }
  const auto merge = [&](std::string_view left, std::string_view right) {
    merges.push_back(byte_level(left) + " " + byte_level(right));
    tokens.push_back(byte_level(left) + byte_level(right));
    types.push_back(1);
  };
  merge("a", "a");
  merge("aa", "a");
  merge(" ", "a");
  merge(" ", " ");
  merge("\xE6", "\xAF");
  merge("\n", "\n");
  for (const char* special : {"<s>", "<s>>"}) {
    tokens.emplace_back(special);
    types.push_back(3);
  }
  return Tokenizer::create(
             {{tokens.begin(), tokens.end()}, {merges.begin(), merges.end()}, types, "deepseek-v3"})
      .value();
}

void check_encoding(const Tokenizer& tokenizer, std::string_view text) {
  const bool is_utf8 = !find_invalid_utf8(text).has_value();
  std::vector<int32_t> ids;
  TANDEM_CHECK(tokenizer.encode_text(text, ids).ok() == is_utf8);
  for (const int32_t id : ids) TANDEM_CHECK(!tokenizer.is_special(id));
  TANDEM_CHECK(!is_utf8 || tokenizer.decode(ids, /*skip_special=*/true) == text);
  ids.clear();
  TANDEM_CHECK(tokenizer.encode_raw(text, ids).ok() == is_utf8);
  TANDEM_CHECK(!is_utf8 || tokenizer.decode(ids, /*skip_special=*/false) == text);
}

void check_streaming(const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view bytes) {
  std::vector<int32_t> ids;
  for (const char c : bytes) ids.push_back(static_cast<uint8_t>(c) + (c == 'i' ? 160 : 0));
  StreamDecoder decoder(tokenizer);
  std::string joined;
  for (const int32_t id : ids) {
    decoder.push(id, joined);
    TANDEM_CHECK(!find_invalid_utf8(joined).has_value());
  }
  joined += decoder.finish();
  Utf8Repair repair;
  std::string expected;
  repair.push(tokenizer->decode(ids, /*skip_special=*/false), expected);
  repair.finish(expected);
  TANDEM_CHECK(joined == expected);
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto kTokenizer = tandem::make_tokenizer();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tandem::check_encoding(*kTokenizer, bytes);
  if (size <= 256) tandem::check_streaming(kTokenizer, bytes);
  return 0;
}
