#include "api/generation/tool_memory.h"

#include <nlohmann/json.hpp>

#include "api/json/json.h"

namespace tandem::api {
namespace {

/// The value with its keys in one order, or the text itself if it is no JSON.
nlohmann::json unordered(const std::string& arguments) {
  if (arguments.empty()) return nlohmann::json::object();
  const auto parsed = parse_json(arguments);
  if (!parsed.ok()) return arguments;
  return nlohmann::json(*parsed);
}

}  // namespace

void ToolMemory::remember(const std::vector<AnswerCall>& calls, const std::string& block) {
  if (ids_max_ == 0 || calls.empty() || block.empty()) return;
  const auto shared = std::make_shared<Block>(Block{block, calls, 0});
  const std::lock_guard lock(mutex_);
  for (const AnswerCall& call : calls) {
    const auto place = order_.insert(order_.end(), call.id);
    if (entries_.try_emplace(call.id, Entry{shared, place}).second) {
      ++stats_.num_ids;
      ++shared->num_ids;
    } else {
      order_.erase(place);  // ids are random: only a caller's mistake comes here
    }
  }
  stats_.block_bytes += static_cast<int64_t>(block.size());
  while (!order_.empty() && (stats_.num_ids > ids_max_ || stats_.block_bytes > bytes_max_)) {
    drop_oldest();
  }
}

void ToolMemory::drop_oldest() {
  const auto found = entries_.find(order_.front());
  order_.pop_front();
  if (found == entries_.end()) return;
  if (--found->second.block->num_ids == 0) {
    stats_.block_bytes -= static_cast<int64_t>(found->second.block->text.size());
  }
  entries_.erase(found);
  --stats_.num_ids;
}

bool ToolMemory::matches(const Message& message, const Block& block) const {
  if (message.tool_calls.size() != block.calls.size()) return false;
  for (size_t i = 0; i < block.calls.size(); ++i) {
    const ToolCall& said = message.tool_calls[i];
    const AnswerCall& sampled = block.calls[i];
    if (said.id != sampled.id || said.name != sampled.name) return false;
    if (said.arguments != sampled.arguments &&
        unordered(said.arguments) != unordered(sampled.arguments)) {
      return false;
    }
  }
  return true;
}

void ToolMemory::attach(std::vector<Message>& messages) {
  if (ids_max_ == 0) return;
  for (Message& message : messages) {
    if (message.tool_calls.empty()) continue;
    std::shared_ptr<Block> block;
    {
      const std::lock_guard lock(mutex_);
      const auto found = entries_.find(message.tool_calls.front().id);
      if (found == entries_.end()) {
        ++stats_.missing;
        continue;
      }
      block = found->second.block;
      order_.splice(order_.end(), order_, found->second.place);
    }
    const bool same = matches(message, *block);
    if (same) message.tool_calls.front().sampled_block = block->text;
    const std::lock_guard lock(mutex_);
    ++(same ? stats_.replayed : stats_.canonical);
  }
}

ToolMemoryStats ToolMemory::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace tandem::api
