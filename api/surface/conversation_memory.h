#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/errors/api_error.h"
#include "api/generation/answer.h"
#include "api/generation/chat_request.h"
#include "base/clock.h"

namespace tandem::api {

/// Remembers conversations whose last turn made calls, so that a client may answer the calls with
/// their results alone. What is kept is the conversation, not the state of the engine: if that has
/// moved on, it computes again what it has lost, and nothing else differs.
/// Threads: any.
class ConversationMemory {
 public:
  struct Limits {
    size_t conversations = 64;
    int64_t bytes = int64_t{64} << 20;  // of their text
    std::chrono::seconds age{300};
  };
  ConversationMemory();
  ConversationMemory(std::unique_ptr<const Clock> clock, const Limits& limits)
      : clock_(std::move(clock)), limits_(limits) {}

  /// Notes a request and its answer, if the answer makes calls.
  void remember(const ChatRequest& request, const Answer& answer);

  /// Where `request` has results of calls but no turn of the assistant, puts the conversation that
  /// they belong to in front of them; system text of its own and, if there are none, the tools are
  /// that conversation's. Other requests are left alone.
  /// Errors: 400 if the calls are not known, 409 if the results are not those of all calls of one
  ///         turn or came too late.
  std::optional<ApiError> resume(ChatRequest& request);

 private:
  struct Conversation {
    std::vector<Message> messages;
    std::vector<Tool> tools;
    int64_t bytes = 0;
    Clock::Time made{};
  };
  using Place = std::list<Conversation>::iterator;

  void drop_oldest();

  const std::unique_ptr<const Clock> clock_;
  const Limits limits_;
  std::mutex mutex_;
  std::list<Conversation> conversations_;  // oldest first
  std::unordered_map<std::string, Place> by_call_;
  int64_t num_bytes_ = 0;
};

}  // namespace tandem::api
