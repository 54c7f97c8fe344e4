#include "api/web/web_files.h"

#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "base/embedded_file.h"
#include "base/status.h"

namespace tandem::api {
namespace web_files {

std::span<const EmbeddedFile> embedded_files();

}  // namespace web_files

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kContentTypes = {{
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
}};

std::string_view content_type_of(std::string_view name) {
  for (const auto& [suffix, type] : kContentTypes) {
    if (name.ends_with(suffix)) return type;
  }
  return "application/octet-stream";
}

std::map<std::string, WebFile, std::less<>> make_files() {
  std::map<std::string, WebFile, std::less<>> files;
  for (const EmbeddedFile& file : web_files::embedded_files()) {
    const std::string path = file.name == "index.html" ? "/" : str_cat("/web/", file.name);
    files.emplace(path, WebFile{content_type_of(file.name), file.bytes});
  }
  return files;
}

}  // namespace

const WebFile* find_web_file(std::string_view path) {
  static const std::map<std::string, WebFile, std::less<>> kFiles = make_files();
  const auto found = kFiles.find(path);
  return found == kFiles.end() ? nullptr : &found->second;
}

}  // namespace tandem::api
