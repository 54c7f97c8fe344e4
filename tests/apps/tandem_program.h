#pragma once

#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/subprocess.h"

namespace tandem::test {

/// The built program.
inline std::string tandem_path() {
  return TANDEM_PROGRAM;
}

inline ProgramResult tandem(
    const std::vector<std::string>& arguments, const std::string& input = {}) {
  return run_program(tandem_path(), arguments, input);
}

inline std::string nano_path() {
  return repo_path("models/nano-q4_k.gguf");
}

}  // namespace tandem::test
