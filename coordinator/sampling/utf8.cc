#include "coordinator/sampling/utf8.h"

#include <algorithm>

namespace tandem {
namespace {

unsigned byte_at(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

/// Length of the character that `lead` begins; 0 if it begins none.
size_t length_from_lead(unsigned lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

/// Whether `second` may follow `lead`. The narrower ranges leave out long forms, surrogates and
/// what lies above U+10FFFF.
bool is_second_byte(unsigned lead, unsigned second) {
  switch (lead) {
    case 0xE0: return second >= 0xA0 && second <= 0xBF;
    case 0xED: return second >= 0x80 && second <= 0x9F;
    case 0xF0: return second >= 0x90 && second <= 0xBF;
    case 0xF4: return second >= 0x80 && second <= 0x8F;
    default: return second >= 0x80 && second <= 0xBF;
  }
}

/// Whether `text`, cut to `length` bytes, has the form of a character from its second byte on.
bool continues(std::string_view text, size_t length) {
  for (size_t i = 1; i < std::min(length, text.size()); ++i) {
    const bool good = i == 1 ? is_second_byte(byte_at(text, 0), byte_at(text, 1))
                             : (byte_at(text, i) & 0xC0) == 0x80;
    if (!good) return false;
  }
  return true;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = length_from_lead(byte_at(text, 0));
    if (length == 0 || length > text.size() || !continues(text, length)) return false;
    text.remove_prefix(length);
  }
  return true;
}

size_t incomplete_utf8_tail(std::string_view text) {
  for (size_t tail = 1; tail <= std::min<size_t>(3, text.size()); ++tail) {
    const std::string_view last = text.substr(text.size() - tail);
    const size_t length = length_from_lead(byte_at(last, 0));
    if (length > tail && continues(last, length)) return tail;
  }
  return 0;
}

}  // namespace tandem
