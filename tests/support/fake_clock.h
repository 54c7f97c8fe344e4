#pragma once

#include "base/clock.h"

namespace tandem::test {

/// Time that only moves when told to.
class FakeClock final : public Clock {
 public:
  Time now() const override { return now_; }
  void sleep_for(std::chrono::nanoseconds duration) override {
    slept += duration;
    advance(duration);
  }
  void advance(std::chrono::nanoseconds duration) {
    now_ += std::chrono::duration_cast<Time::duration>(duration);
  }

  std::chrono::nanoseconds slept{0};

 private:
  Time now_{};
};

}  // namespace tandem::test
