#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// What each folder may include, beside itself: the table of docs/architecture.md.
const std::map<std::string, std::set<std::string>>& allowed_includes() {
  static const std::map<std::string, std::set<std::string>> table = {
      {"base", {}},
      {"model/formats", {"base"}},
      {"model", {"base", "model/formats"}},
      {"kernels", {"base", "model/formats"}},
      {"kvstore", {"base", "model", "model/formats", "kernels"}},
      {"worker", {"base", "model", "model/formats", "kernels", "kvstore"}},
      {"coordinator", {"base", "model", "model/formats", "kernels", "kvstore", "worker"}},
      {"api", {"base", "model", "model/formats", "coordinator"}},
      {"tools", {"base", "model", "model/formats", "kernels", "kvstore", "worker"}},
  };
  return table;
}

std::string folder_of(const std::string& path) {
  if (path.starts_with("model/formats/")) return "model/formats";
  return path.substr(0, path.find('/'));
}

struct Source {
  std::string path;  // relative to the repository
  std::vector<std::string> lines;
};

std::vector<Source> sources() {
  std::vector<Source> out;
  const fs::path root = test::repo_path("");
  for (const char* folder :
       {"api", "apps", "base", "benchmarks", "coordinator", "kernels", "kvstore", "model", "tests",
        "tools", "worker"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      const std::string path = fs::relative(entry.path(), root);
      if (path.find("node_modules") != std::string::npos) continue;
      if (extension != ".h" && extension != ".cc" && extension != ".cu" && extension != ".cuh") {
        continue;
      }
      Source source{path, {}};
      std::istringstream text(test::read_text(entry.path()));
      for (std::string line; std::getline(text, line);) source.lines.push_back(line);
      out.push_back(std::move(source));
    }
  }
  return out;
}

/// The path of an include of ours, or empty.
std::string own_include(const std::string& line) {
  constexpr std::string_view kPrefix = "#include \"";
  if (!line.starts_with(kPrefix)) return {};
  return line.substr(kPrefix.size(), line.find('"', kPrefix.size()) - kPrefix.size());
}

TEST(TidyTest, IncludesFollowTheArrows) {
  const auto all = sources();
  ASSERT_GT(all.size(), 100U);
  for (const Source& source : all) {
    const std::string folder = folder_of(source.path);
    const auto rule = allowed_includes().find(folder);
    if (rule == allowed_includes().end()) continue;  // apps, tests and benchmarks include anything
    for (const std::string& line : source.lines) {
      const std::string include = own_include(line);
      if (include.empty() || folder_of(include) == folder) continue;
      EXPECT_TRUE(rule->second.contains(folder_of(include)))
          << source.path << " includes " << include;
    }
  }
}

TEST(TidyTest, HeadersAreGuarded) {
  for (const Source& source : sources()) {
    if (!source.path.ends_with(".h") && !source.path.ends_with(".cuh")) continue;
    EXPECT_TRUE(!source.lines.empty() && source.lines.front() == "#pragma once") << source.path;
  }
}

TEST(TidyTest, FilesStayShort) {
  constexpr size_t kLinesMax = 900;
  for (const Source& source : sources()) EXPECT_LE(source.lines.size(), kLinesMax) << source.path;
}

}  // namespace
}  // namespace tandem
