#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tandem::test {

/// Holds the steps of a stage, so that a test can look at what happens beside a step for as long as
/// it likes. Open at first.
/// Threads: one passes, others hold and wait.
class StepGate {
 public:
  /// Lets `num_steps` more steps pass, and holds the next one.
  void hold_after(int64_t num_steps) {
    {
      const std::lock_guard lock(mutex_);
      num_free_steps_ = num_steps;
    }
    changed_.notify_all();
  }
  void open() { hold_after(kAll); }

  /// Waits until a step is held. False: none came in a minute.
  bool wait_until_held() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(
        lock, std::chrono::minutes(1), [&] { return is_held_ && num_free_steps_ == 0; });
  }

  /// Called by the stage before a step does anything.
  void pass() {
    std::unique_lock lock(mutex_);
    if (num_free_steps_ == 0) {
      is_held_ = true;
      changed_.notify_all();
      changed_.wait(lock, [&] { return num_free_steps_ != 0; });
      is_held_ = false;
    }
    if (num_free_steps_ > 0) --num_free_steps_;
  }

 private:
  static constexpr int64_t kAll = -1;

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t num_free_steps_ = kAll;
  bool is_held_ = false;
};

}  // namespace tandem::test
