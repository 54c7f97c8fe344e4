#pragma once

#include <memory>

#include "api/responses/responses_writer.h"

namespace tandem::api {

/// The response's events, with sequence numbers from 0 without a gap. One item is open at a time.
///
/// A call is declared done when the next one begins or when the answer has ended with calls, not
/// before: clients run it then, and what the budget cut, or what turned out malformed, must not be
/// run. `request` outlives the encoder.
std::unique_ptr<StreamEncoder> responses_encoder(
    const ResponsesRequest& request, const ResponsesWriterOptions& options,
    const ResponseHead& head);

}  // namespace tandem::api
