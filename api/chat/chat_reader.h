#pragma once

#include "api/errors/api_error.h"
#include "api/generation/chat_request.h"
#include "api/json/json.h"

namespace tandem::api {

/// Reads the body of POST /v1/chat/completions.
/// Errors: 400 that names the field. What this server cannot do is refused; what cannot change the
/// answer (user, metadata, store, service_tier) and unknown fields are skipped.
ApiResult<ChatRequest> read_chat_request(const Json& body);

}  // namespace tandem::api
