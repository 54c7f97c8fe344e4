#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace tandem::cpu {

/// `count` units of equal cost (bytes to read, say) in one job of a step.
struct UnitRange {
  int64_t count = 0;
  int64_t cost = 1;
};

/// How the units of a step are dealt out. The results may not depend on it.
enum class Dealing {
  kByCost,    // contiguous shares of equal cost, decided beforehand: for short steps
  kOnDemand,  // one unit at a time, in order: for units of ten microseconds and more
};

/// Calls fn(thread_idx, job_idx, unit) for every unit of every job, as one step of the pool. A step
/// of less than `serial_cost` in all runs on the caller alone.
template <class Fn>
void run_units(
    ThreadPool& pool, std::span<const UnitRange> jobs, Dealing dealing, int64_t serial_cost,
    const Fn& fn) {
  int64_t total = 0;
  for (const UnitRange& job : jobs) total += job.count * job.cost;
  const auto num_threads = static_cast<int64_t>(pool.num_threads());
  if (num_threads == 1 || total < serial_cost) {
    for (size_t j = 0; j < jobs.size(); ++j) {
      for (int64_t unit = 0; unit < jobs[j].count; ++unit) fn(0, j, unit);
    }
    return;
  }
  if (dealing == Dealing::kByCost) {
    pool.run([&](int thread_idx) {
      const int64_t begin = total * thread_idx / num_threads;
      const int64_t end = total * (thread_idx + 1) / num_threads;
      int64_t job_begin = 0;
      for (size_t j = 0; j < jobs.size(); ++j) {
        // A unit belongs to the share in which it begins.
        const int64_t cost = jobs[j].cost;
        const auto first_at = [&](int64_t place) {
          const int64_t unit = place <= job_begin ? 0 : (place - job_begin + cost - 1) / cost;
          return unit < jobs[j].count ? unit : jobs[j].count;
        };
        const int64_t last = first_at(end);
        for (int64_t unit = first_at(begin); unit < last; ++unit) fn(thread_idx, j, unit);
        job_begin += jobs[j].count * cost;
      }
    });
    return;
  }
  std::atomic<int64_t> next{0};
  pool.run([&](int thread_idx) {
    int64_t job_begin = 0;
    size_t j = 0;
    for (;;) {
      const int64_t unit = next.fetch_add(1, std::memory_order_relaxed);
      while (j < jobs.size() && unit - job_begin >= jobs[j].count) job_begin += jobs[j++].count;
      if (j == jobs.size()) return;
      fn(thread_idx, j, unit - job_begin);
    }
  });
}

/// Calls fn(thread_idx, i) for i < count, on demand if there is more than one.
template <class Fn>
void run_items(ThreadPool& pool, int64_t count, const Fn& fn) {
  const UnitRange job{count, 1};
  run_units(
      pool, {&job, 1}, Dealing::kOnDemand, /*serial_cost=*/2,
      [&](int thread_idx, size_t, int64_t i) { fn(thread_idx, i); });
}

}  // namespace tandem::cpu
