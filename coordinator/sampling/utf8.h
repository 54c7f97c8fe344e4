#pragma once

#include <cstddef>
#include <string_view>

namespace tandem {

/// Whether `text` is UTF-8: shortest forms only, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

/// Bytes at the end of `text` that begin a UTF-8 character and wait for the rest of it: 0 to 3.
size_t incomplete_utf8_tail(std::string_view text);

}  // namespace tandem
