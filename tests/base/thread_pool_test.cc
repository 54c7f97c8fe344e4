#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
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

}  // namespace
}  // namespace tandem
