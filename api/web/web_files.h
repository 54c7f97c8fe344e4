#pragma once

#include <string_view>

namespace tandem::api {

/// One file of the web page, inside the program.
struct WebFile {
  std::string_view content_type;
  std::string_view bytes;
};

/// The file served at `path` ("/", "/web/app.js"), or null.
const WebFile* find_web_file(std::string_view path);

/// What the page may load and do: nothing from elsewhere, no inline script.
inline constexpr std::string_view kWebContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace tandem::api
