#include "tests/support/environment.h"

#include <cstdlib>

namespace tandem::test {

std::optional<std::string> deepseek_tokenizer_path() {
  const char* const value = std::getenv("TANDEM_TEST_DEEPSEEK_TOKENIZER");
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace tandem::test
