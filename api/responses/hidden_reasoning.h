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

/// Remembers the reasoning before a turn's calls by tool id, for clients that are not shown it and
/// so cannot send it back. Without it the next request would differ from what the model generated.
/// The least recently used go first.
/// Threads: any.
class HiddenReasoning {
 public:
  explicit HiddenReasoning(
      int64_t ids_max = kToolReplayIdsMax, int64_t bytes_max = kHiddenReasoningBytesMax)
      : ids_max_(ids_max), bytes_max_(bytes_max) {}

  void remember(const Answer& answer);
  /// Gives each assistant message with calls and without reasoning what was remembered for it.
  void attach(std::vector<Message>& messages);

 private:
  static constexpr int64_t kHiddenReasoningBytesMax = int64_t{256} << 20;

  struct Entry {
    std::string reasoning;
    std::list<std::string>::iterator place;
  };

  const int64_t ids_max_;
  const int64_t bytes_max_;
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;  // by the first call's id
  std::list<std::string> order_;                    // least recently used first
  int64_t num_bytes_ = 0;
};

}  // namespace tandem::api
