#include "tests/support/paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace tandem::test {

std::string repo_path(const std::string& relative) {
  return std::string(TANDEM_REPO_ROOT) + "/" + relative;
}

std::string temp_path(const std::string& name) {
  return ::testing::TempDir() + "tandem_" + std::to_string(::getpid()) + "_" + name;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << "cannot read " << path;
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

}  // namespace tandem::test
