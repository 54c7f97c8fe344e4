#include "model/families/deepseek_v4/utf8_repair.h"

#include <cstddef>

namespace tandem::v4 {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Scan {
  size_t length;    // bytes of the character, or of the invalid part
  bool valid;       // a whole character
  bool incomplete;  // the bytes end inside a character that is valid so far
};

/// Reads one character at the start of `bytes`, which is not empty. The second byte's range rules
/// out overlong forms, surrogates and values above U+10FFFF.
Scan scan_character(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, true, false};
  if (lead < 0xC2 || lead > 0xF4) return {1, false, false};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {i, false, true};
    const bool continues =
        i == 1 ? byte(i) >= low && byte(i) <= high : byte(i) >= 0x80 && byte(i) <= 0xBF;
    if (!continues) return {i, false, false};
  }
  return {length, true, false};
}

}  // namespace

void Utf8Repair::append(std::string_view bytes, std::string& out) {
  std::string joined;
  if (!tail_.empty()) {
    joined = tail_;
    joined += bytes;
    bytes = joined;
    tail_.clear();
  }
  size_t start = 0;  // valid bytes from here to pos are not copied yet
  size_t pos = 0;
  while (pos < bytes.size()) {
    const Scan scan = scan_character(bytes.substr(pos));
    if (scan.valid) {
      pos += scan.length;
      continue;
    }
    out += bytes.substr(start, pos - start);
    if (scan.incomplete) {
      tail_ = bytes.substr(pos);
      return;
    }
    out += kReplacement;
    pos += scan.length;
    start = pos;
  }
  out += bytes.substr(start);
}

void Utf8Repair::flush(std::string& out) {
  if (tail_.empty()) return;
  out += kReplacement;
  tail_.clear();
}

std::string repair_utf8(std::string_view bytes) {
  Utf8Repair repair;
  std::string out;
  repair.append(bytes, out);
  repair.flush(out);
  return out;
}

}  // namespace tandem::v4
