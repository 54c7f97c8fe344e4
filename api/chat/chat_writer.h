#pragma once

#include <memory>

#include "api/surface/surface.h"

namespace tandem::api {

/// The chat.completion object.
Json chat_response(const ChatRequest& request, const Completion& completion);

/// chat.completion.chunk events: role, reasoning_content, content, tool calls (a header with the
/// id, then fragments of the arguments), the finish reason, usage if asked for, and [DONE].
std::unique_ptr<StreamEncoder> chat_encoder(const ChatRequest& request, const ResponseHead& head);

}  // namespace tandem::api
