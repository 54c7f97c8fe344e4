#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/generation/answer.h"
#include "base/limits.h"
#include "model/spec/prompt.h"

namespace tandem::api {

struct ToolMemoryStats {
  int64_t num_ids = 0;
  int64_t block_bytes = 0;
  int64_t replayed = 0;   // messages whose block was replayed
  int64_t canonical = 0;  // messages with known calls that were edited or regrouped
  int64_t missing = 0;    // messages with an id that is not known
};

/// Remembers the exact text that the model sampled for its calls, by tool id, so that a replayed
/// conversation tokenizes as it was generated. The least recently used go first.
/// Threads: any.
class ToolMemory {
 public:
  /// `ids_max` 0: remembers nothing.
  explicit ToolMemory(int64_t ids_max = kToolReplayIdsMax, int64_t bytes_max = kToolReplayBytesMax)
      : ids_max_(ids_max), bytes_max_(bytes_max) {}

  /// Notes a complete block and the calls in it.
  void remember(const std::vector<AnswerCall>& calls, const std::string& block);

  /// Sets sampled_block on each assistant message all of whose calls come from one remembered block
  /// and say what that block said: names, order and arguments (as JSON values, so that spacing and
  /// key order do not matter). Other messages are left for the renderer to write anew.
  void attach(std::vector<Message>& messages);

  ToolMemoryStats stats() const;

 private:
  struct Block {
    std::string text;
    std::vector<AnswerCall> calls;
    size_t num_ids = 0;  // that are remembered still
  };
  struct Entry {
    std::shared_ptr<Block> block;
    std::list<std::string>::iterator place;
  };

  bool matches(const Message& message, const Block& block) const;
  void drop_oldest();

  const int64_t ids_max_;
  const int64_t bytes_max_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
  std::list<std::string> order_;  // least recently used first
  ToolMemoryStats stats_;
};

}  // namespace tandem::api
