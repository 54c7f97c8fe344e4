#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace tandem {

/// A fixed set of threads that run one function together and meet at its end.
/// The caller is thread 0. Results must not depend on `num_threads`: split work by output element.
///
/// A waiting thread spins for a bounded time and then sleeps, so that the steps of a token follow
/// each other without a system call and an idle pool costs nothing. A pool with more threads than
/// the process has cores never spins.
/// Threads: one owner calls run(); it is not re-entrant.
class ThreadPool {
 public:
  /// Limits: num_threads >= 1.
  explicit ThreadPool(int num_threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int num_threads() const { return num_threads_; }

  /// Calls fn(thread_idx) once on every thread and returns when all are done. Allocates nothing.
  template <class Fn>
  void run(Fn&& fn) {
    using Plain = std::remove_reference_t<Fn>;
    run_erased(
        [](void* context, int thread_idx) { (*static_cast<Plain*>(context))(thread_idx); },
        const_cast<void*>(static_cast<const void*>(&fn)));
  }

  /// Calls fn(begin, end) on contiguous parts of [0, count), at least `grain` items each.
  template <class Fn>
  void for_range(int64_t count, int64_t grain, Fn&& fn) {
    if (count <= 0) return;
    const int64_t parts_max = grain < 1 ? count : (count + grain - 1) / grain;
    const int64_t parts = parts_max < num_threads_ ? parts_max : num_threads_;
    if (parts <= 1) {
      fn(int64_t{0}, count);
      return;
    }
    run([&](int thread_idx) {
      if (thread_idx >= parts) return;
      fn(count * thread_idx / parts, count * (thread_idx + 1) / parts);
    });
  }

 private:
  using Call = void (*)(void* context, int thread_idx);
  void run_erased(Call call, void* context);
  void work(int thread_idx);
  template <class Ready>
  bool spin_until(const Ready& ready) const;

  int num_threads_;
  bool may_spin_ = false;

  // Written by the owner before it raises generation_, read by the workers after they see that.
  Call call_ = nullptr;
  void* context_ = nullptr;

  // Each pair (word that is waited for, count of sleepers) is written and read in one total order:
  // a waiter announces itself before its last look at the word, and who changes the word looks for
  // sleepers afterwards, so one of the two sees the other.
  alignas(64) std::atomic<uint64_t> generation_{0};
  std::atomic<int> num_sleeping_{0};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<int> num_running_{0};
  std::atomic<bool> owner_sleeping_{false};

  alignas(64) std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  std::vector<std::thread> threads_;
};

}  // namespace tandem
