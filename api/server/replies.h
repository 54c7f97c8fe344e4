#pragma once

#include <string_view>

#include "api/errors/api_error.h"
#include "api/http/http_server.h"
#include "api/json/json.h"

namespace tandem::api {

HttpReply json_reply(const Json& body);
/// An error with Retry-After and Allow where it has them.
HttpReply error_reply(const ApiError& error, ErrorStyle style);
/// The style of the surface that `path` belongs to.
ErrorStyle error_style(std::string_view path);

}  // namespace tandem::api
