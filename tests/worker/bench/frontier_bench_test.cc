#include "worker/bench/frontier_bench.h"

#include <gtest/gtest.h>

#include "tests/support/stages.h"
#include "tests/support/status_matchers.h"
#include "worker/bench/step_profile.h"

namespace tandem::test {
namespace {

TEST(FrontierBenchTest, ListsFrontiersBySteps) {
  FrontierOptions options{.ctx_start = 256, .ctx_max = 1000, .step_incr = 300, .gen_tokens = 8};
  EXPECT_EQ(*list_frontiers(options, 1008), (std::vector<int64_t>{256, 556, 856, 1000}));
  options.step_mul = 1.5;
  EXPECT_EQ(*list_frontiers(options, 1008), (std::vector<int64_t>{256, 384, 576, 864, 1000}));
  options = {.ctx_start = 5, .ctx_max = 5};
  EXPECT_EQ(*list_frontiers(options, 133), std::vector<int64_t>{5});
}

TEST(FrontierBenchTest, RefusesOptionsThatContradict) {
  const FrontierOptions good{.ctx_start = 4, .ctx_max = 8, .step_incr = 2, .gen_tokens = 1};
  const auto refuses = [](const FrontierOptions& options, int64_t context, const char* text) {
    EXPECT_ERROR(list_frontiers(options, context).status(), StatusCode::kInvalidArgument, text);
  };
  EXPECT_OK(list_frontiers(good, 9));
  refuses(good, 8, "context of 9");
  FrontierOptions bad = good;
  bad.ctx_start = 0;
  refuses(bad, 9, "at least 1");
  bad = good;
  bad.ctx_max = 3;
  refuses(bad, 9, "from 4 to 3");
  bad = good;
  bad.step_incr = 0;
  refuses(bad, 9, "grow");
  bad = good;
  bad.step_mul = 0.5;
  refuses(bad, 9, "factor");
  bad = good;
  bad.gen_tokens = -1;
  refuses(bad, 9, "negative");
}

TEST(FrontierBenchTest, MeasuresEachFrontierAndTakesTheBankBack) {
  const OpenModel nano = open_nano();
  LocalStageOptions options;
  options.context_tokens = 512;
  options.max_rows = 128;
  ThreadPool pool(1);
  auto stage =
      LocalStage::create(nano.model, nano.file, whole_model(nano.model->spec()), options, pool);
  ASSERT_OK(stage);
  const SystemClock clock;
  StepProfile profile(clock);
  int64_t num_rows = 0;
  const OpObserver before_op = [&](const Op& op, size_t op_idx) {
    if (op_idx == 0) num_rows += (*stage)->current_step().num_rows;
    profile.begin_op(op, (*stage)->current_cost(op));
  };
  const std::function<void()> after_step = [&] { profile.end_step(); };
  (*stage)->observe(&before_op, &after_step);

  const std::vector<int32_t> tokens(300, 7);
  std::vector<FrontierResult> results;
  ASSERT_OK(run_frontiers(
      **stage, tokens, {.ctx_start = 150, .ctx_max = 300, .step_incr = 150, .gen_tokens = 3}, 1,
      clock, [&](const FrontierResult& result) { results.push_back(result); }));
  ASSERT_EQ(results.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(results[i].ctx_tokens, 150 * static_cast<int64_t>(i + 1));
    EXPECT_EQ(results[i].prefill_tokens, 150);  // the decoded tokens are gone
    EXPECT_EQ(results[i].gen_tokens, 3);
    EXPECT_GT(results[i].prefill_tps(), 0);
    EXPECT_GT(results[i].gen_tps_steady(), 0);
    EXPECT_LE(results[i].first_token_seconds, results[i].gen_seconds);
  }
  EXPECT_GT(results[1].state_bytes, results[0].state_bytes);
  EXPECT_EQ((*stage)->length(0), 0);
  EXPECT_EQ(num_rows, 300 + 2 * 3);

  // Chunks end on multiples of 128: 128 + 22, 106 + 44; and three steps of one token at each.
  EXPECT_EQ(profile.num_steps(), 4 + 6);
  int64_t head_bytes = 0;
  for (const StepProfile::Entry& entry : profile.entries()) {
    EXPECT_GE(entry.seconds, 0);
    if (entry.name == "head") head_bytes = entry.cost.weight_bytes;
  }
  // The output matrix in Q8_0 and the mixer in F16, for each of the eight steps with logits.
  EXPECT_EQ(head_bytes, 8 * (int64_t{8192} * 256 / 32 * 34 + 4 * 1024 * 2));
}

TEST(FrontierBenchTest, RefusesAPromptThatIsTooShort) {
  const OpenModel nano = open_nano();
  LocalStageOptions options;
  ThreadPool pool(1);
  auto stage =
      LocalStage::create(nano.model, nano.file, whole_model(nano.model->spec()), options, pool);
  ASSERT_OK(stage);
  const std::vector<int32_t> tokens(10, 7);
  EXPECT_ERROR(
      run_frontiers(
          **stage, tokens, {.ctx_start = 11, .ctx_max = 11, .gen_tokens = 0}, 1, SystemClock(),
          [](const FrontierResult&) {}),
      StatusCode::kInvalidArgument, "10 tokens, 11");
}

}  // namespace
}  // namespace tandem::test
