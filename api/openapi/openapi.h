#pragma once

#include <string_view>

namespace tandem::api {

/// The OpenAPI description of the HTTP surfaces, JSON; inside the program.
std::string_view openapi_document();

}  // namespace tandem::api
