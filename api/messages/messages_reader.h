#pragma once

#include "api/errors/api_error.h"
#include "api/generation/chat_request.h"
#include "api/json/json.h"

namespace tandem::api {

enum class MessagesUse { kGenerate, kCountTokens };

/// Reads the body of POST /v1/messages or of its count_tokens.
///
/// - `system` and system messages leave out the text parts that start with "x-anthropic-": clients
///   put values there that differ in every request, which no model needs and which would make every
///   prompt a new one. System messages keep their place.
/// - The text blocks of one user turn are told apart by a blank line, those of an assistant turn
/// are
///   joined as they are. A tool result is a message of its own, at its place.
/// - Redacted reasoning is dropped. So are cache_control, metadata, container, context_management,
///   mcp_servers and fields that are not known.
///
/// Errors: 400 names the field: a wrong type, role, block or tool type; a conversation that ends
///         with the assistant (only when generating).
ApiResult<ChatRequest> read_messages_request(const Json& body, MessagesUse use);

}  // namespace tandem::api
