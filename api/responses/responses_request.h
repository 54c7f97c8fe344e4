#pragma once

#include "api/errors/api_error.h"
#include "api/generation/chat_request.h"
#include "api/json/json.h"
#include "api/responses/responses_tools.h"

namespace tandem::api {

/// What the body of POST /v1/responses asks for.
struct ResponsesRequest {
  ChatRequest chat;
  ResponsesTools tools;
  bool shows_reasoning = false;  // a summary was asked for: the reasoning itself is given
  bool seals_reasoning = false;  // include has reasoning.encrypted_content
  Json echo;                     // fields of the response object that repeat the request
};

}  // namespace tandem::api
