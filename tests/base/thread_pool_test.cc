#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

namespace tandem {
namespace {

TEST(ThreadPoolTest, CoversRangeOnceWithAnyThreadCount) {
  for (const int num_threads : {1, 2, 3, 7}) {
    ThreadPool pool(num_threads);
    for (const int64_t count : {0, 1, 2, 6, 7, 8, 1000}) {
      SCOPED_TRACE(::testing::Message() << num_threads << " threads, " << count << " items");
      std::vector<int> hits(static_cast<size_t>(count), 0);
      pool.for_range(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      for (const int hit : hits) ASSERT_EQ(hit, 1);
    }
  }
}

TEST(ThreadPoolTest, KeepsGrainTogether) {
  ThreadPool pool(4);
  std::atomic<int> num_calls = 0;
  pool.for_range(10, 16, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 10);
    ++num_calls;
  });
  EXPECT_EQ(num_calls, 1);
}

TEST(ThreadPoolTest, RunsManyRoundsWithoutLosingOne) {
  ThreadPool pool(3);
  std::atomic<int64_t> total = 0;
  for (int round = 0; round < 20000; ++round) pool.run([&](int) { ++total; });
  EXPECT_EQ(total, 60000);
}

TEST(ThreadPoolTest, WakesSleepersAndSurvivesPauses) {
  for (const int num_threads : {2, 9}) {  // 9: more than the cores of a small machine, no spinning
    ThreadPool pool(num_threads);
    std::atomic<int64_t> total = 0;
    for (int round = 0; round < 30; ++round) {
      // Around the spin limit, so that some rounds find the workers asleep and some do not.
      std::this_thread::sleep_for(std::chrono::microseconds(20 * (round % 10)));
      pool.run([&](int thread_idx) {
        // A late worker makes the owner sleep.
        if (thread_idx == 1 && round % 3 == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(300));
        }
        ++total;
      });
      ASSERT_EQ(total, int64_t{num_threads} * (round + 1));
    }
  }
}

TEST(ThreadPoolTest, MakesWritesVisibleBothWays) {
  ThreadPool pool(2);
  int64_t value = 0;  // not atomic: the pool orders the accesses
  for (int round = 0; round < 5000; ++round) {
    ++value;
    pool.run([&](int thread_idx) {
      if (thread_idx == 1) ++value;
    });
  }
  EXPECT_EQ(value, 10000);
}

TEST(ThreadPoolTest, IdlesWithoutLoad) {
  ThreadPool pool(2);
  pool.run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double busy_ms = 1e3 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(busy_ms, 20.0);
}

}  // namespace
}  // namespace tandem
