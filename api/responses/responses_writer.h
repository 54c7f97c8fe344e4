#pragma once

#include <memory>

#include "api/responses/responses_request.h"
#include "api/surface/surface.h"

namespace tandem::api {

struct ResponsesWriterOptions {
  // Some clients do not know the event response.incomplete and take a stream that ends with it for
  // a broken one: then an answer that the budget cut is called completed.
  bool incomplete_as_completed = false;
};

/// The response object. Output items: reasoning (only if the request asks for a summary or for the
/// sealed form), the message if there is visible text, one for each call.
Json responses_response(
    const ResponsesRequest& request, const ResponsesWriterOptions& options,
    const Completion& completion);

// Parts of it, for the stream.

Json response_object(
    const ResponsesRequest& request, const ResponseHead& head, const char* status, Json output);
/// Sets status and incomplete_details from how the answer ended, and the usage.
void set_response_end(
    const ResponsesWriterOptions& options, const Completion& completion, Json& response);
Json text_part(const std::string& text, Json logprobs);
Json message_item(
    const std::string& item_id, const char* status, const std::string& text, Json logprobs);
Json reasoning_item(
    const ResponsesRequest& request, const std::string& item_id, const char* status,
    const std::string& text);
bool writes_reasoning(const ResponsesRequest& request);

}  // namespace tandem::api
