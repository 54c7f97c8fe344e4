#pragma once

#include <memory>

#include "api/surface/surface.h"

namespace tandem::api {

/// The message object: content blocks thinking, text, tool_use; why it stopped; usage.
///
/// Tokens of the prompt that were computed are input_tokens, those that were reused
/// cache_read_input_tokens; nothing is charged for keeping them, so cache_creation_input_tokens
/// is 0.
Json messages_response(const Completion& completion);

/// message_start, then for each block content_block_start, deltas and content_block_stop, then
/// message_delta and message_stop. One block is open at a time. The start waits for the first step
/// of the prompt, which tells how much of it was cached; until then the sign of life is a ping, as
/// later.
std::unique_ptr<StreamEncoder> messages_encoder(const ResponseHead& head);

}  // namespace tandem::api
