#include "tests/support/environment.h"

#include <cstdlib>

namespace tandem::test {

namespace {

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> deepseek_tokenizer_path() {
  return variable("TANDEM_TEST_DEEPSEEK_TOKENIZER");
}

std::optional<std::string> nano_f16_path() {
  return variable("TANDEM_TEST_NANO_F16");
}

}  // namespace tandem::test
