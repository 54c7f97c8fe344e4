#pragma once

#include <chrono>

namespace tandem {

/// The only source of time. Threads: any.
class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  virtual ~Clock() = default;
  virtual Time now() const = 0;
  /// Blocks the calling thread; a simulated clock advances instead.
  virtual void sleep_for(std::chrono::nanoseconds duration) = 0;
};

/// The machine's monotonic clock.
class SystemClock final : public Clock {
 public:
  Time now() const override { return std::chrono::steady_clock::now(); }
  void sleep_for(std::chrono::nanoseconds duration) override;
};

/// Seconds between two times.
inline double seconds_between(Clock::Time from, Clock::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace tandem
