#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

/// How deep arrays and objects of a JSON text lie in each other, by its brackets: a bound to hold a
/// text to before a parser builds a tree of it. O(bytes).
int64_t json_nesting(std::string_view text);

}  // namespace tandem
