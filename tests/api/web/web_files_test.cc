#include "api/web/web_files.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::api {
namespace {

/// All matches of the first group of `pattern` in the file served at `path`.
std::vector<std::string> matches_in(std::string_view path, const char* pattern) {
  const WebFile* file = find_web_file(path);
  if (file == nullptr) return {};
  const std::string text(file->bytes);
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

TEST(WebFilesTest, ServesThePageAtTheRoot) {
  const WebFile* page = find_web_file("/");
  ASSERT_NE(page, nullptr);
  EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
  EXPECT_TRUE(page->bytes.starts_with("<!doctype html>"));
  EXPECT_TRUE(page->bytes.ends_with("</html>\n"));
}

TEST(WebFilesTest, HasEveryFileThatThePageAsksFor) {
  const auto files = matches_in("/", R"re((?:src|href)="(/[^"]*)")re");
  EXPECT_GE(files.size(), 3u);
  for (const std::string& path : files) EXPECT_NE(find_web_file(path), nullptr) << path;
}

TEST(WebFilesTest, HasEveryModuleThatAScriptImports) {
  size_t num_imports = 0;
  for (const char* script : {"app", "api", "markdown", "message_view", "status_board", "store"}) {
    const std::string path = std::string("/web/") + script + ".js";
    ASSERT_NE(find_web_file(path), nullptr) << path;
    EXPECT_EQ(find_web_file(path)->content_type, "text/javascript; charset=utf-8");
    for (const std::string& name : matches_in(path, R"re(from "\./([^"]*)")re")) {
      ++num_imports;
      EXPECT_NE(find_web_file("/web/" + name), nullptr) << name;
    }
  }
  EXPECT_GE(num_imports, 5u);
}

TEST(WebFilesTest, LoadsNothingFromElsewhere) {
  for (const char* path : {"/", "/web/style.css", "/web/app.js", "/web/api.js"}) {
    ASSERT_NE(find_web_file(path), nullptr) << path;
    EXPECT_EQ(find_web_file(path)->bytes.find("://"), std::string_view::npos) << path;
  }
}

TEST(WebFilesTest, RefusesOtherPaths) {
  for (const char* path :
       {"", "/index.html", "/web/", "/web/../app.js", "/web/none.js", "app.js"}) {
    EXPECT_EQ(find_web_file(path), nullptr) << path;
  }
}

}  // namespace
}  // namespace tandem::api
