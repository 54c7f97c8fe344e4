#include "base/thread_pool.h"

#include <chrono>

#include "base/check.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace tandem {
namespace {

// Longer than what lies between two steps of a token (sampling, bookkeeping), short enough to be
// invisible as load.
constexpr std::chrono::microseconds kSpin{80};
constexpr int kPausesPerLook = 32;

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Cores that this process may run on.
int num_cores() {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads) {
  TANDEM_CHECK(num_threads >= 1);
  may_spin_ = num_threads <= num_cores();
  threads_.reserve(static_cast<size_t>(num_threads - 1));
  for (int i = 1; i < num_threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

/// True once ready() is; false if the time is up first.
template <class Ready>
bool ThreadPool::spin_until(const Ready& ready) const {
  if (ready()) return true;
  if (!may_spin_) return false;
  // Most waits are far shorter than a look at the clock.
  for (int i = 0; i < 16 * kPausesPerLook; ++i) {
    pause_core();
    if (ready()) return true;
  }
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      pause_core();
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

void ThreadPool::run_erased(Call call, void* context) {
  if (num_threads_ == 1) {
    call(context, 0);
    return;
  }
  call_ = call;
  context_ = context;
  num_running_.store(num_threads_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1);
  if (num_sleeping_.load() > 0) {
    // The lock orders this with a worker that has announced itself and not yet gone to sleep.
    { const std::lock_guard lock(mutex_); }
    start_.notify_all();
  }
  call(context, 0);
  const auto all_done = [this] { return num_running_.load(std::memory_order_acquire) == 0; };
  if (spin_until(all_done)) return;
  std::unique_lock lock(mutex_);
  // An exchange and no store: qemu lets a load of an Arm program overtake an earlier store.
  owner_sleeping_.exchange(true);
  done_.wait(lock, [this] { return num_running_.load() == 0; });
  owner_sleeping_.store(false);
}

void ThreadPool::work(int thread_idx) {
  uint64_t seen = 0;
  for (;;) {
    const auto called = [&] {
      return generation_.load(std::memory_order_acquire) != seen ||
             stopping_.load(std::memory_order_relaxed);
    };
    if (!spin_until(called)) {
      std::unique_lock lock(mutex_);
      num_sleeping_.fetch_add(1);
      start_.wait(lock, [&] { return stopping_.load() || generation_.load() != seen; });
      num_sleeping_.fetch_sub(1);
    }
    // One generation at a time: the owner waits for all before it raises the next.
    if (generation_.load(std::memory_order_acquire) == seen) return;  // stopping
    ++seen;
    call_(context_, thread_idx);
    if (num_running_.fetch_sub(1) == 1 && owner_sleeping_.load()) {
      { const std::lock_guard lock(mutex_); }
      done_.notify_one();
    }
  }
}

}  // namespace tandem
