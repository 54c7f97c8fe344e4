#include "coordinator/tokenizer/byte_level.h"

#include <array>

#include "base/utf8.h"

namespace tandem {
namespace {

constexpr uint32_t kAlphabetEnd = 0x144;  // U+0100 and 68 more

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

struct Alphabet {
  std::array<uint16_t, 256> code_point{};
  std::array<int16_t, kAlphabetEnd> byte{};  // -1: not in the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (auto& byte : alphabet.byte) byte = -1;
  uint16_t next = 0x100;
  for (uint16_t byte = 0; byte < 256; ++byte) {
    const uint16_t code_point = stands_for_itself(byte) ? byte : next++;
    alphabet.code_point[byte] = code_point;
    alphabet.byte[code_point] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();
static_assert(kAlphabet.code_point[' '] == 0x120 && kAlphabet.code_point['\n'] == 0x10A);
static_assert(kAlphabet.code_point[173] == kAlphabetEnd - 1, "the last of the 68");

}  // namespace

uint32_t byte_to_code_point(uint8_t byte) {
  return kAlphabet.code_point[byte];
}

std::optional<std::string> decode_byte_level(std::string_view text) {
  if (find_invalid_utf8(text).has_value()) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = utf8_front(text);
    if (c.code_point >= kAlphabetEnd || kAlphabet.byte[c.code_point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.byte[c.code_point]));
    text.remove_prefix(c.num_bytes);
  }
  return bytes;
}

}  // namespace tandem
