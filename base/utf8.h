#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

/// One character of well-formed UTF-8.
struct Utf8Char {
  uint32_t code_point = 0;
  uint32_t num_bytes = 0;
};

/// The character at the start of `text`, which is not empty and known to be well-formed.
inline Utf8Char utf8_front(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {
      (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

/// Appends the UTF-8 form of a code point, which is at most U+10FFFF.
void append_utf8(uint32_t code_point, std::string& out);

/// Offset of the first byte that belongs to no well-formed character, or nothing. Overlong forms,
/// surrogates and values past U+10FFFF are not well-formed. Source: Unicode 15, table 3-7.
std::optional<size_t> find_invalid_utf8(std::string_view text);

/// Bytes at the end of `text` that begin a well-formed character and wait for the rest of it: 0
/// to 3.
size_t incomplete_utf8_tail(std::string_view text);

/// Turns a stream of bytes into well-formed UTF-8. An incomplete character at the end is held back;
/// each maximal ill-formed part becomes one U+FFFD, so the result does not depend on where the
/// stream was cut. Source: Unicode 15, section 3.9, "substitution of maximal subparts".
/// Threads: one owner.
class Utf8Repair {
 public:
  /// Appends what is certain to `out`.
  void push(std::string_view bytes, std::string& out);
  /// The stream ended: an incomplete character becomes U+FFFD. Ready for another stream.
  void finish(std::string& out);

 private:
  void step(uint8_t byte, std::string& out);

  char pending_[4] = {};
  uint8_t num_pending_ = 0;
  uint8_t num_missing_ = 0;  // continuation bytes still to come
  uint8_t low_ = 0x80;       // range of the next continuation byte
  uint8_t high_ = 0xBF;
};

/// The whole of `bytes` with each maximal ill-formed part replaced by U+FFFD.
std::string repair_utf8(std::string_view bytes);

}  // namespace tandem
