#include "worker/local_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/limits.h"
#include "tests/support/naive_v4.h"
#include "tests/support/paths.h"
#include "tests/support/stages.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

naive::V4Shape tiny_shape() {
  naive::V4Shape shape;
  shape.E = 32;
  shape.QL = 32;
  shape.H = 2;
  shape.IH = 1;
  shape.X = 4;
  shape.F = 32;
  shape.ratios = {0, 4, 128};
  shape.hash_layers = 1;
  return shape;
}

OpenModel open_tiny(const naive::V4Weights& weights) {
  const std::string path = temp_path("stage_test.gguf");
  naive::write_v4_gguf(path, tiny_shape(), weights);
  OpenModel opened = open_test_model(path);
  std::filesystem::remove(path);  // the mapping keeps it
  return opened;
}

LocalStageOptions small_options() {
  LocalStageOptions options;
  options.numerics = Numerics::kExact;
  options.num_banks = 2;
  options.context_tokens = 16;
  options.max_rows = 8;
  return options;
}

class LocalStageTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<LocalStage>> create(
      const LayerRange& range, const LocalStageOptions& options = small_options()) {
    return LocalStage::create(opened_.model, opened_.file, range, options, pool_);
  }
  LayerRange all() const { return whole_model(opened_.model->spec()); }

  static StepBatch rows(std::vector<StepRow> list) { return {std::move(list)}; }

  ThreadPool pool_{2};
  OpenModel opened_ = open_tiny(naive::random_v4_weights(tiny_shape(), {}, 7));
};

TEST_F(LocalStageTest, SaysWhatItIs) {
  auto stage = create({1, 3, false, true});
  ASSERT_OK(stage);
  const StageInfo& info = (*stage)->info();
  EXPECT_EQ(info.range.begin, 1);
  EXPECT_EQ(info.boundary_width, 4 * 32);
  EXPECT_EQ(info.vocab_size, 64);
  EXPECT_EQ(info.num_banks, 2);
  EXPECT_EQ(info.context_tokens, 16);
  EXPECT_EQ(info.max_rows, 8);
  EXPECT_EQ((*stage)->length(1), 0);
}

TEST_F(LocalStageTest, RefusesOptionsOutOfRange) {
  const auto refuses = [&](const auto& change, const char* text) {
    LocalStageOptions options = small_options();
    change(options);
    EXPECT_ERROR(create(all(), options), StatusCode::kInvalidArgument, text);
  };
  refuses([](LocalStageOptions& o) { o.max_rows = 0; }, "rows");
  refuses([](LocalStageOptions& o) { o.max_rows = kChunkTokensMax + 1; }, "rows");
  refuses([](LocalStageOptions& o) { o.state_dtype = DType::kQ8_0; }, "Q8_0");
  refuses([](LocalStageOptions& o) { o.num_banks = 0; }, "num_banks");
  refuses([](LocalStageOptions& o) { o.num_banks = kBanksMax + 1; }, "num_banks");
  refuses([](LocalStageOptions& o) { o.context_tokens = 0; }, "context");
  refuses([](LocalStageOptions& o) { o.context_tokens = kContextTokensMax + 1; }, "context");
  refuses([](LocalStageOptions& o) { o.rewind_tokens = -1; }, "rewind");
}

TEST_F(LocalStageTest, RefusesRangesThatAreNoStage) {
  for (const LayerRange& range :
       {LayerRange{0, 0, true, false}, LayerRange{2, 1, false, false}, LayerRange{0, 4, true, true},
        LayerRange{-1, 3, true, true}, LayerRange{0, 3, false, true}, LayerRange{0, 3, true, false},
        LayerRange{1, 3, true, true}, LayerRange{0, 2, true, true}}) {
    EXPECT_ERROR(create(range), StatusCode::kInvalidArgument, "")
        << range.begin << " to " << range.end;
  }
}

TEST_F(LocalStageTest, RefusesBatchesThatBreakTheRulesAndRunsNothing) {
  auto created = create(all());
  ASSERT_OK(created);
  LocalStage& stage = **created;
  const auto refuses = [&](const StepBatch& batch, const char* text) {
    EXPECT_ERROR(stage.submit({&batch, {}}), StatusCode::kInvalidArgument, text);
    EXPECT_ERROR(stage.collect(), StatusCode::kInvalidArgument, "in flight");
    EXPECT_EQ(stage.length(0), 0);
    EXPECT_EQ(stage.length(1), 0);
  };
  refuses(rows({}), "0 rows");
  refuses(rows(std::vector<StepRow>(9)), "9 rows");
  refuses(rows({{0, 0, 64, true}}), "token 64");
  refuses(rows({{0, 0, -1, true}}), "token -1");
  refuses(rows({{2, 0, 0, true}}), "bank 2");
  refuses(rows({{-1, 0, 0, true}}), "bank -1");
  refuses(rows({{0, 1, 0, true}}), "position 1");
  refuses(rows({{0, -1, 0, true}}), "position -1");
  refuses(rows({{0, 0, 0, false}, {0, 2, 0, true}}), "position 2");
  refuses(rows({{0, 0, 0, false}, {0, 0, 0, true}}), "position 0");
  refuses(rows({{0, 0, 0, false}, {1, 0, 0, false}, {0, 1, 0, true}}), "together");
}

TEST_F(LocalStageTest, StopsAtTheEndOfTheContext) {
  auto created = create(all());
  ASSERT_OK(created);
  LocalStage& stage = **created;
  for (int32_t pos = 0; pos < 16; ++pos) {
    const StepBatch batch = rows({{1, pos, pos, pos == 15}});
    ASSERT_OK(stage.submit({&batch, {}}));
    const auto result = stage.collect();
    ASSERT_OK(result);
    EXPECT_EQ(result->logits.rows, pos == 15 ? 1 : 0);
  }
  const StepBatch beyond = rows({{1, 16, 0, true}});
  EXPECT_ERROR(stage.submit({&beyond, {}}), StatusCode::kInvalidArgument, "context of 16");
  EXPECT_EQ(stage.length(1), 16);
}

TEST_F(LocalStageTest, TakesOneItemAtATime) {
  auto created = create(all());
  ASSERT_OK(created);
  LocalStage& stage = **created;
  EXPECT_ERROR(stage.collect(), StatusCode::kInvalidArgument, "");
  const StepBatch first = rows({{0, 0, 1, true}});
  const StepBatch second = rows({{0, 1, 2, true}});
  ASSERT_OK(stage.submit({&first, {}}));
  EXPECT_ERROR(stage.submit({&second, {}}), StatusCode::kInvalidArgument, "collect");
  EXPECT_OK(stage.collect());
  ASSERT_OK(stage.submit({&second, {}}));
  EXPECT_OK(stage.collect());
  EXPECT_EQ(stage.length(0), 2);
}

TEST_F(LocalStageTest, RefusesABoundaryOfAnotherShape) {
  auto created = create({1, 3, false, true});
  ASSERT_OK(created);
  LocalStage& stage = **created;
  const StepBatch batch = rows({{0, 0, 1, true}});
  const std::vector<float> values(2 * 128);
  EXPECT_ERROR(stage.submit({&batch, {}}), StatusCode::kInvalidArgument, "boundary");
  EXPECT_ERROR(
      stage.submit({&batch, {values.data(), 1, 127, 127}}), StatusCode::kInvalidArgument, "127");
  EXPECT_ERROR(
      stage.submit({&batch, {values.data(), 2, 128, 128}}), StatusCode::kInvalidArgument, "2");
  EXPECT_OK(stage.submit({&batch, {values.data(), 1, 128, 128}}));
  EXPECT_OK(stage.collect());
}

TEST_F(LocalStageTest, RefusesBanksThatItDoesNotHave) {
  auto created = create(all());
  ASSERT_OK(created);
  LocalStage& stage = **created;
  MemoryStream stream;
  for (const int64_t bank : {int64_t{-1}, int64_t{2}}) {
    const std::string text = str_cat("bank ", bank);
    EXPECT_ERROR(stage.reset(bank), StatusCode::kInvalidArgument, text);
    EXPECT_ERROR(stage.truncate(bank, 0), StatusCode::kInvalidArgument, text);
    EXPECT_ERROR(stage.fork(0, bank), StatusCode::kInvalidArgument, text);
    EXPECT_ERROR(stage.fork(bank, 0), StatusCode::kInvalidArgument, text);
    EXPECT_ERROR(stage.checkpoint(bank), StatusCode::kInvalidArgument, text);
    EXPECT_ERROR(stage.restore(bank, 1), StatusCode::kInvalidArgument, text);
    EXPECT_ERROR(stage.save(bank, stream), StatusCode::kInvalidArgument, text);
    EXPECT_ERROR(stage.load(bank, stream), StatusCode::kInvalidArgument, text);
  }
}

TEST_F(LocalStageTest, AnotherRangesStateIsRefused) {
  auto first = create({0, 2, true, false});
  auto second = create({2, 3, false, true});
  ASSERT_OK(first);
  ASSERT_OK(second);
  MemoryStream stream;
  ASSERT_OK((*first)->save(0, stream));
  EXPECT_ERROR((*second)->load(0, stream), StatusCode::kInvalidArgument, "slabs");
}

TEST_F(LocalStageTest, ObserversSeeEveryOperation) {
  auto created = create(all());
  ASSERT_OK(created);
  std::vector<std::string> names;
  const OpObserver observer = [&](const Op& op, size_t op_idx) {
    EXPECT_EQ(op_idx, names.size());
    names.emplace_back(op_name(op));
  };
  (*created)->observe(&observer);
  const StepBatch batch = rows({{0, 0, 1, true}});
  ASSERT_OK((*created)->submit({&batch, {}}));
  ASSERT_OK((*created)->collect());
  EXPECT_EQ(names.front(), "embed");
  EXPECT_EQ(names.back(), "head");
  EXPECT_EQ(std::count(names.begin(), names.end(), "attend"), 3);
  EXPECT_EQ(std::count(names.begin(), names.end(), "compress"), 3);  // ratio 4 has two
  EXPECT_EQ(std::count(names.begin(), names.end(), "index_select"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "hc_pre"), 6);
}

TEST(LocalStageFileTest, RefusesExpertTablesThatAKernelCannotTrust) {
  ThreadPool pool(1);
  const auto expect_refused = [&](int32_t expert, const char* text) {
    naive::V4Weights weights = naive::random_v4_weights(tiny_shape(), {}, 7);
    std::vector<std::byte>& bytes = weights.at("blk.0.ffn_gate_tid2eid.weight").front().bytes;
    std::memcpy(bytes.data() + (5 * 3 + 1) * sizeof(int32_t), &expert, sizeof(expert));
    const OpenModel opened = open_tiny(weights);
    EXPECT_ERROR(
        LocalStage::create(
            opened.model, opened.file, whole_model(opened.model->spec()), small_options(), pool),
        StatusCode::kDataLoss, text);
  };
  expect_refused(4, "expert 4 for token 5");
  expect_refused(-1, "expert -1 for token 5");
  const naive::V4Weights weights = naive::random_v4_weights(tiny_shape(), {}, 7);
  int32_t first = 0;  // an expert that the token has already
  std::memcpy(
      &first,
      weights.at("blk.0.ffn_gate_tid2eid.weight").front().bytes.data() + 5 * 3 * sizeof(int32_t),
      sizeof(first));
  expect_refused(first, "twice");
}

}  // namespace
}  // namespace tandem::test
