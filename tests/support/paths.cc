#include "tests/support/paths.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace tandem::test {
namespace {

/// A folder of this process alone, gone when it exits.
class TempFolder {
 public:
  TempFolder() : path_(::testing::TempDir() + "tandem_XXXXXX") {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr) << "cannot create " << path_;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string repo_path(const std::string& relative) {
  return std::string(TANDEM_REPO_ROOT) + "/" + relative;
}

std::string temp_path(const std::string& name) {
  static const TempFolder folder;
  return folder.path() + "/" + name;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << "cannot read " << path;
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

}  // namespace tandem::test
