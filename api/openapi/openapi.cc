#include "api/openapi/openapi.h"

#include <span>

#include "base/check.h"
#include "base/embedded_file.h"

namespace tandem::api {
namespace openapi_files {

std::span<const EmbeddedFile> embedded_files();

}  // namespace openapi_files

std::string_view openapi_document() {
  const auto files = openapi_files::embedded_files();
  TANDEM_CHECK(files.size() == 1);
  return files.front().bytes;
}

}  // namespace tandem::api
