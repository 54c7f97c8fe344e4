// Counts operator new, and memory taken for temporaries, around the steps of a decode.

#include <gtest/gtest.h>

#include "tests/support/count_allocations.h"
#include "tests/support/stages.h"
#include "tests/support/status_matchers.h"
#include "worker/local_stage.h"

namespace tandem::test {
namespace {

TEST(DecodeAllocationTest, CountsAllocations) {
  const int64_t before = num_allocations();
  ::operator delete(::operator new(1));  // a new expression may be optimised away
  EXPECT_GT(num_allocations(), before);
}

TEST(DecodeAllocationTest, AllocatesNothingForATokenOnceWarm) {
  const OpenModel nano = open_nano();
  for (const Numerics numerics : {Numerics::kFast, Numerics::kExact}) {
    LocalStageOptions options;
    options.numerics = numerics;
    options.context_tokens = 1024;
    ThreadPool pool(2);
    auto stage =
        LocalStage::create(nano.model, nano.file, whole_model(nano.model->spec()), options, pool);
    ASSERT_OK(stage);
    StepBatch batch;
    const auto run = [&](int64_t num_rows) {
      const auto begin = static_cast<int32_t>((*stage)->length(0));
      batch.rows.clear();
      for (int32_t i = 0; i < num_rows; ++i) {
        batch.rows.push_back({0, begin + i, 100 + (begin + i) % 1000, i + 1 == num_rows});
      }
      ASSERT_OK((*stage)->submit({&batch, {}}));
      ASSERT_OK((*stage)->collect());
    };
    // A prompt, then tokens until every kind of window has closed once; the indexer selects from
    // position 256 on.
    run(400);
    for (int i = 0; i < 4; ++i) run(1);
    const int64_t before = num_allocations();
    // Over a window of 128 positions and many of 4.
    const int num_tokens = numerics == Numerics::kFast ? 130 : 10;
    for (int i = 0; i < num_tokens; ++i) run(1);
    EXPECT_EQ(num_allocations() - before, 0)
        << (numerics == Numerics::kFast ? "fast" : "exact") << ", " << num_tokens << " tokens";
  }
}

}  // namespace
}  // namespace tandem::test
