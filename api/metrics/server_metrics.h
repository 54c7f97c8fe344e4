#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace tandem::api {

enum class SurfaceKind { kChat, kCompletion, kResponses, kMessages };
inline constexpr std::array kSurfaceNames = {
    "openai_chat", "openai_completion", "openai_responses", "anthropic_messages"};

enum class Outcome { kCompleted, kFailed, kCanceled };
inline constexpr std::array kOutcomeNames = {"completed", "failed", "canceled"};

enum class ParseResult { kOk, kRetried, kFailed, kTruncated };
inline constexpr std::array kParseResultNames = {"ok", "retried", "failed", "truncated"};

enum class Phase { kQueued, kPrefill, kDecode };
inline constexpr std::array kPhaseNames = {"queued", "prefill", "decode"};

inline constexpr std::array kThinkNames = {"none", "low", "high", "max"};

/// Counters of the server since its start. Threads: any.
struct ServerMetrics {
  template <size_t kSize>
  using Counters = std::array<std::atomic<int64_t>, kSize>;

  std::atomic<int64_t> requests_started{0};
  Counters<kOutcomeNames.size()> requests{};
  Counters<kSurfaceNames.size()> surfaces{};
  Counters<kThinkNames.size()> thinks{};
  Counters<kParseResultNames.size()> tool_parses{};
  Counters<kPhaseNames.size()> disconnects{};
  std::atomic<int64_t> shed_queue{0};
  std::atomic<int64_t> shed_slow_reader{0};

  int64_t inflight() const {
    int64_t count = requests_started;
    for (const auto& outcome : requests) count -= outcome;
    return count;
  }
  template <class Array, class Enum>
  static void add(Array& counters, Enum which) {
    ++counters[static_cast<size_t>(which)];
  }
};

}  // namespace tandem::api
