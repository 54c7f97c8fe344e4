#include "coordinator/engine/pipeline.h"

#include "tests/support/fake_stage.h"
#include "tests/support/stages.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

using test::FakeStage;
using test::whole_stage_info;

StageInfo part_info(int32_t begin, int32_t end) {
  StageInfo info = whole_stage_info(32, 2, 64, 16);
  info.range = {begin, end, begin == 0, end == 6};
  return info;
}

Result<Pipeline> pipeline_of(const std::vector<StageInfo>& infos) {
  std::vector<std::unique_ptr<StageExecutor>> stages;
  for (const StageInfo& info : infos) stages.push_back(std::make_unique<FakeStage>(info));
  return Pipeline::create(std::move(stages));
}

/// A pipeline of two stages, with a hold on both.
struct TwoStages {
  FakeStage* first = nullptr;
  FakeStage* second = nullptr;
  std::unique_ptr<Pipeline> pipeline;

  TwoStages() {
    std::vector<std::unique_ptr<StageExecutor>> stages;
    auto a = std::make_unique<FakeStage>(part_info(0, 3));
    auto b = std::make_unique<FakeStage>(part_info(3, 6));
    first = a.get();
    second = b.get();
    stages.push_back(std::move(a));
    stages.push_back(std::move(b));
    auto made = Pipeline::create(std::move(stages));
    EXPECT_OK(made);
    pipeline = std::make_unique<Pipeline>(std::move(made).value());
  }

  Status feed(int64_t bank, std::vector<int32_t> tokens) {
    StepBatch batch;
    auto pos = static_cast<int32_t>(pipeline->length(bank));
    for (const int32_t token : tokens) {
      batch.rows.push_back({static_cast<int32_t>(bank), pos++, token, false});
    }
    batch.rows.back().wants_logits = true;
    return pipeline->run(batch).status();
  }
};

TEST(PipelineTest, TakesStagesThatCoverTheLayersInOrder) {
  EXPECT_OK(pipeline_of({part_info(0, 6)}));
  EXPECT_OK(pipeline_of({part_info(0, 2), part_info(2, 5), part_info(5, 6)}));
}

TEST(PipelineTest, RefusesStagesThatDoNotFitTogether) {
  const auto code = StatusCode::kInvalidArgument;
  EXPECT_ERROR(pipeline_of({}), code, "at least one stage");
  EXPECT_ERROR(pipeline_of({part_info(1, 6)}), code, "does not embed");
  EXPECT_ERROR(pipeline_of({part_info(0, 5)}), code, "emits no logits");
  EXPECT_ERROR(pipeline_of({part_info(0, 2), part_info(3, 6)}), code, "starts at layer 3, not 2");
  EXPECT_ERROR(pipeline_of({part_info(0, 3), part_info(2, 6)}), code, "starts at layer 2, not 3");

  const auto with = [](auto change) {
    StageInfo changed = part_info(3, 6);
    change(changed);
    return pipeline_of({part_info(0, 3), changed});
  };
  EXPECT_ERROR(with([](StageInfo& s) { s.num_banks = 3; }), code, "differs from the first");
  EXPECT_ERROR(with([](StageInfo& s) { s.context_tokens = 65; }), code, "differs from the first");
  EXPECT_ERROR(with([](StageInfo& s) { s.vocab_size = 31; }), code, "differs from the first");
  EXPECT_ERROR(with([](StageInfo& s) { s.boundary_width = 8; }), code, "differs from the first");
}

TEST(PipelineTest, RefusesStepsTooSmallForTheBanks) {
  EXPECT_ERROR(
      pipeline_of({whole_stage_info(32, 4, 64, 3)}), StatusCode::kInvalidArgument, "--chunk");
}

TEST(PipelineTest, TakesTheSmallestStepOfItsStages) {
  StageInfo small = part_info(3, 6);
  small.max_rows = 5;
  auto pipeline = pipeline_of({part_info(0, 3), small});
  ASSERT_OK(pipeline);
  EXPECT_EQ(pipeline->max_rows(), 5);
}

TEST(PipelineTest, RefusesLogitsOfAnotherShapeThanAskedFor) {
  TwoStages two;
  two.second->logits_rows_offset = 1;
  EXPECT_ERROR(two.feed(0, {1, 2}), StatusCode::kInternal, "[2, 32], asked for [1, 32]");
}

TEST(PipelineTest, EmptiesABankThatALaterStageCouldNotChange) {
  TwoStages two;
  ASSERT_OK(two.feed(0, {1, 2, 3}));
  ASSERT_OK(two.feed(1, {1, 2, 3}));
  two.second->before_operation = [](const std::string& operation) {
    return operation == "truncate" ? Status(StatusCode::kUnavailable, "lost") : Status();
  };
  EXPECT_ERROR(two.pipeline->truncate(0, 2), StatusCode::kUnavailable, "lost");
  EXPECT_EQ(two.first->length(0), 0);
  EXPECT_EQ(two.second->length(0), 0);
  EXPECT_EQ(two.first->length(1), 3) << "the other bank is untouched";
}

TEST(PipelineTest, LeavesABankAsItWasWhenTheFirstStageRefusesToGoBack) {
  TwoStages two;
  ASSERT_OK(two.feed(0, {1, 2, 3, 4, 5, 6, 7}));
  EXPECT_ERROR(two.pipeline->truncate(0, 1), StatusCode::kAborted, "taken back");
  EXPECT_EQ(two.first->length(0), 7);
  EXPECT_EQ(two.second->length(0), 7);
}

TEST(PipelineTest, DropsTheFirstHalfOfACheckpointThatFailed) {
  TwoStages two;
  ASSERT_OK(two.feed(0, {1, 2}));
  two.second->before_operation = [](const std::string&) {
    return Status(StatusCode::kResourceExhausted, "full");
  };
  EXPECT_ERROR(two.pipeline->checkpoint(0), StatusCode::kResourceExhausted, "full");
  EXPECT_EQ(two.first->num_checkpoints(), 0u);
}

TEST(PipelineTest, SavesAndLoadsEveryStage) {
  TwoStages two;
  ASSERT_OK(two.feed(0, {4, 5, 6}));
  test::MemoryStream stream;
  ASSERT_OK(two.pipeline->save(0, stream));
  ASSERT_OK(two.pipeline->load(1, stream));
  EXPECT_EQ(two.first->tokens(1)[2], 6);
  EXPECT_EQ(two.second->tokens(1)[2], 6);

  stream.bytes.pop_back();
  stream.position = 0;
  EXPECT_ERROR(two.pipeline->load(1, stream), StatusCode::kDataLoss, "cut short");
  EXPECT_EQ(two.first->length(1), 0) << "both stages are empty, not one";
  EXPECT_EQ(two.second->length(1), 0);
}

}  // namespace
}  // namespace tandem
