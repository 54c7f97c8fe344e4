#pragma once

#include <string>

namespace tandem::test {

/// The repository root of this build.
std::string repo_path(const std::string& relative);

/// A file under tests/golden.
inline std::string golden_path(const std::string& relative) {
  return repo_path("tests/golden/" + relative);
}

/// A path in a temporary folder of this process; the folder is removed when the process exits.
std::string temp_path(const std::string& name);

/// The whole file; fails the test if it cannot be read.
std::string read_text(const std::string& path);

}  // namespace tandem::test
