#include "api/openapi/openapi.h"

#include <cstddef>

#include "base/check.h"

namespace tandem::api {
namespace openapi_files {

struct EmbeddedFile {
  const char* name;
  const unsigned char* bytes;
  size_t size;
};
extern const EmbeddedFile kEmbeddedFiles[];
extern const size_t kNumEmbeddedFiles;

}  // namespace openapi_files

std::string_view openapi_document() {
  TANDEM_CHECK(openapi_files::kNumEmbeddedFiles == 1);
  const openapi_files::EmbeddedFile& file = openapi_files::kEmbeddedFiles[0];
  return {reinterpret_cast<const char*>(file.bytes), file.size};
}

}  // namespace tandem::api
