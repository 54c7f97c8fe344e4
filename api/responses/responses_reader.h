#pragma once

#include "api/responses/responses_request.h"

namespace tandem::api {

/// Reads the body of POST /v1/responses.
///
/// Nothing is kept between requests: previous_response_id, conversation, prompt and background are
/// refused, store is accepted without effect. After an input that ends with the assistant an empty
/// user turn asks it to go on.
/// Errors: 400 that names the field.
ApiResult<ResponsesRequest> read_responses_request(const Json& body);

}  // namespace tandem::api
