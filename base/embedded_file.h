#pragma once

#include <string_view>

namespace tandem {

/// A file inside the program; see cmake/EmbedFiles.cmake.
struct EmbeddedFile {
  std::string_view name;  // without folders
  std::string_view bytes;
};

}  // namespace tandem
