#pragma once

#include <string_view>
#include <vector>

#include "model/spec/prompt.h"

namespace tandem::v4 {

/// Appends text of `kind` to `out`, to its last event if that is of the same kind and tool.
inline void add_event_text(
    Event::Kind kind, std::string_view data, int tool_idx, std::vector<Event>& out) {
  if (data.empty()) return;
  if (out.empty() || out.back().kind != kind || out.back().tool_idx != tool_idx) {
    out.push_back({kind, {}, tool_idx});
  }
  out.back().data += data;
}

}  // namespace tandem::v4
