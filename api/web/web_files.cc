#include "api/web/web_files.h"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace tandem::api {
namespace embedded {

// The build writes the table from the files of this folder.
struct EmbeddedFile {
  const char* name;
  const unsigned char* bytes;
  size_t size;
};
extern const EmbeddedFile kEmbeddedFiles[];
extern const size_t kNumEmbeddedFiles;

}  // namespace embedded

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
  for (size_t i = 0; i < embedded::kNumEmbeddedFiles; ++i) {
    const embedded::EmbeddedFile& file = embedded::kEmbeddedFiles[i];
    const std::string_view name = file.name;
    const WebFile entry{
        content_type_of(name), {reinterpret_cast<const char*>(file.bytes), file.size}};
    files.emplace(name == "index.html" ? "/" : "/web/" + std::string(name), entry);
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
