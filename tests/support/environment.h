#pragma once

#include <optional>
#include <string>

namespace tandem::test {

// What a test run may take from its environment; nothing else reads it.

/// TANDEM_TEST_DEEPSEEK_TOKENIZER: path of a DeepSeek V3 or V4 tokenizer.json with the real
/// vocabulary. Unset or empty: the tests on it skip.
std::optional<std::string> deepseek_tokenizer_path();

/// TANDEM_TEST_NANO_F16: path of the nano model with F16 weights.
std::optional<std::string> nano_f16_path();

}  // namespace tandem::test
