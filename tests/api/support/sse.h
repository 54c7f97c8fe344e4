#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/json/json.h"

namespace tandem::test {

struct SseEvent {
  std::string name;  // of the event line; empty if there is none
  api::Json data;    // null if it is no JSON, as [DONE]
};

/// The events of a stream, comments left out. Fails the test if the stream does not end with an
/// empty line or has a line that is neither.
std::vector<SseEvent> parse_sse(std::string_view stream);

/// What the official client's accumulator makes of a Messages stream: the message. Fails the test
/// where that accumulator would fail: an event before message_start, an index that is not the next,
/// a delta for a block that is not open, arguments that are no JSON, an end without message_stop.
api::Json fold_messages(const std::vector<SseEvent>& events);

/// The same for a Responses stream: the last response, after checking that the items it lists are
/// those of the events, that the sequence numbers have no gap, that no item overlaps another and
/// that each item's deltas, joined, are what its end says.
api::Json fold_responses(const std::vector<SseEvent>& events);

}  // namespace tandem::test
