#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "model/spec/prompt.h"

namespace tandem::v4 {

/// Writes a conversation in DeepSeek V4's official chat format.
///
/// A tool message is a user turn with a result block; neighbouring user and tool messages are one
/// turn, except around a user message with a task. Results follow the order of the calls they
/// answer, and unknown ids go first. Once any message declares tools, all reasoning is kept.
/// Content and reasoning are text throughout, so a tag in a replayed message stays text.
///
/// Beyond the official encoder, which takes a system message for the start of a conversation only:
/// a user turn still waiting for its assistant marker gets it before the answer even if a system
/// message stands between, and a prompt that ends with a system message gets it too.
///
/// Cost: linear in the conversation.
/// Errors: kInvalidArgument with the message's index: unknown task, a task, tools or calls on the
///         wrong role, tools or a response format that is not JSON.
Result<std::vector<Piece>> render_prompt(
    std::span<const Message> messages, const RenderOptions& options);

}  // namespace tandem::v4
