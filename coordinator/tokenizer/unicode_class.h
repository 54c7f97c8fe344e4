#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace tandem {

/// What the pre-tokenizer wants to know about a code point, as bits.
enum CharClass : uint8_t {
  kLetter = 1,        // general category L
  kMark = 2,          // M
  kNumber = 4,        // N
  kPunctuation = 8,   // P or S
  kSpace = 16,        // property White_Space
  kNewline = 32,      // carriage return or line feed
  kIdeograph = 64,    // U+4E00..U+9FA5, U+3040..U+30FF
  kAsciiLetter = 128  // A-Z, a-z
};

/// Classes of every code point, in blocks of 256 of which equal ones are stored once (about 60 KB).
/// Categories are those of the linked utf8proc; code points that its Unicode version does not know
/// have no class.
class CharClassTable {
 public:
  /// The table, built on the first call. Threads: any. Cost: about 10 ms once.
  static const CharClassTable& get();

  uint8_t ascii(uint8_t byte) const { return classes_[byte]; }  // byte < 128
  uint8_t operator[](uint32_t code_point) const {               // code_point <= U+10FFFF
    return classes_[static_cast<uint32_t>(block_of_[code_point >> 8]) << 8 | (code_point & 0xFF)];
  }

 private:
  CharClassTable();

  std::array<uint16_t, 0x1100> block_of_{};
  std::vector<uint8_t> classes_;
};

}  // namespace tandem
