#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

/// The byte-level alphabet of GPT-2 style vocabularies: bytes 33-126, 161-172 and 174-255 are
/// written as the code point of the same number, the other 68, in ascending order, as U+0100 and up
/// (a space is U+0120, a line feed U+010A).

/// The code point that stands for a byte.
uint32_t byte_to_code_point(uint8_t byte);

/// The bytes that `text` stands for; nothing if it is not well-formed UTF-8 or holds a character
/// outside the alphabet.
std::optional<std::string> decode_byte_level(std::string_view text);

}  // namespace tandem
