#include "api/responses/hidden_reasoning.h"

namespace tandem::api {

void HiddenReasoning::remember(const Answer& answer) {
  if (answer.calls.empty() || answer.reasoning.empty()) return;
  const std::string& id = answer.calls.front().id;
  const std::lock_guard lock(mutex_);
  if (entries_.contains(id)) return;
  const auto place = order_.insert(order_.end(), id);
  entries_.emplace(id, Entry{answer.reasoning, place});
  num_bytes_ += static_cast<int64_t>(answer.reasoning.size());
  while (!order_.empty() &&
         (static_cast<int64_t>(entries_.size()) > ids_max_ || num_bytes_ > bytes_max_)) {
    const auto oldest = entries_.find(order_.front());
    num_bytes_ -= static_cast<int64_t>(oldest->second.reasoning.size());
    entries_.erase(oldest);
    order_.pop_front();
  }
}

void HiddenReasoning::attach(std::vector<Message>& messages) {
  const std::lock_guard lock(mutex_);
  for (Message& message : messages) {
    if (message.tool_calls.empty() || message.reasoning.has_value()) continue;
    const auto found = entries_.find(message.tool_calls.front().id);
    if (found == entries_.end()) continue;
    message.reasoning = found->second.reasoning;
    order_.splice(order_.end(), order_, found->second.place);
  }
}

}  // namespace tandem::api
