#pragma once

#include <memory>

#include "api/surface/surface.h"

namespace tandem::api {

/// The text_completion object.
Json completion_response(const ChatRequest& request, const Completion& completion);

/// text_completion chunks, the finish reason, usage if asked for, and [DONE]. Reasoning has no
/// place on this surface and is left out.
std::unique_ptr<StreamEncoder> completion_encoder(
    const ChatRequest& request, const ResponseHead& head);

}  // namespace tandem::api
