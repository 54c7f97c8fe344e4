#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/support/oracle.h"
#include "tests/support/stages.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

// A row's result depends on its sequence and on nothing else: not on how the sequence was cut into
// steps, what shared a step with it, how the layers were cut into stages, how many threads ran, or
// whether its state went through a file. Compared bit by bit.

struct Param {
  Numerics numerics = Numerics::kExact;
  DType state = DType::kF32;
};

std::string param_name(const ::testing::TestParamInfo<Param>& info) {
  return std::string(info.param.numerics == Numerics::kExact ? "Exact" : "Fast") +
         dtype_name(info.param.state);
}

void PrintTo(const Param& param, std::ostream* out) {
  *out << (param.numerics == Numerics::kExact ? "exact" : "fast") << ", state "
       << dtype_name(param.state);
}

// Past the window (128), two HCA rows (256) and the count at which the index selects (4 * 64).
constexpr size_t kNumTokens = 276;
constexpr size_t kCut = 261;       // inside a window of each ratio
constexpr size_t kContinued = 24;  // tokens after a cut: one more window of ratio 4, at least
constexpr int64_t kRewind = 40;

const std::vector<int32_t>& tokens() {
  static const std::vector<int32_t> all =
      slice(oracle_prompt("q4_k", "needle_1k").ids, 0, kNumTokens);
  return all;
}

::testing::AssertionResult bitwise_equal(const Tensor& actual, const Tensor& expected) {
  if (actual.rows != expected.rows || actual.cols != expected.cols) {
    return ::testing::AssertionFailure() << actual.rows << " rows, expected " << expected.rows;
  }
  for (int64_t t = 0; t < actual.rows; ++t) {
    if (std::memcmp(actual.row(t), expected.row(t), static_cast<size_t>(actual.cols) * 4) == 0) {
      continue;
    }
    for (int64_t i = 0; i < actual.cols; ++i) {
      if (actual.at(t, i) != expected.at(t, i)) {
        return ::testing::AssertionFailure()
               << "row " << t << " logit " << i << ": " << actual.at(t, i) << ", expected "
               << expected.at(t, i);
      }
    }
  }
  return ::testing::AssertionSuccess();
}

Tensor rows_of(const Tensor& tensor, size_t begin, size_t end) {
  Tensor out(static_cast<int64_t>(end - begin), tensor.cols);
  std::copy(
      tensor.row(static_cast<int64_t>(begin)), tensor.row(static_cast<int64_t>(end)),
      out.values.begin());
  return out;
}

class InvarianceTest : public ::testing::TestWithParam<Param> {
 protected:
  static LocalStageOptions options() {
    LocalStageOptions out;
    out.numerics = GetParam().numerics;
    out.state_dtype = GetParam().state;
    out.num_banks = 4;
    out.context_tokens = 512;
    out.rewind_tokens = kRewind;
    out.max_rows = 512;
    return out;
  }

  /// The uninterrupted run: one step for everything.
  const Tensor& whole() {
    if (whole_.rows == 0) whole_ = Stages(nano_, {}, options()).feed(0, tokens(), kNumTokens);
    return whole_;
  }

  /// The bank holds tokens [0, begin): the next give the rows of the uninterrupted run.
  void expect_continues(Stages& stages, int32_t bank, size_t begin) {
    ASSERT_EQ(stages.length(bank), static_cast<int64_t>(begin));
    const size_t end = std::min(kNumTokens, begin + kContinued);
    EXPECT_TRUE(bitwise_equal(
        stages.feed(bank, slice(tokens(), begin, end), 13), rows_of(whole(), begin, end)));
  }

  /// Other tokens than the sequence's.
  static std::vector<int32_t> detour(size_t count) {
    std::vector<int32_t> out(count);
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<int32_t>(100 + 7 * i);
    return out;
  }

  OpenModel nano_ = open_nano();
  Tensor whole_;
};

TEST_P(InvarianceTest, AnyCutIntoStepsGivesTheSameLogits) {
  Stages stages(nano_, {}, options());
  for (const int64_t chunk : {128, 37, 1}) {
    SCOPED_TRACE(str_cat("chunk ", chunk));
    ASSERT_OK(stages.stage(0).reset(0));
    EXPECT_TRUE(bitwise_equal(stages.feed(0, tokens(), chunk), whole()));
  }
  // Uneven steps in turn.
  ASSERT_OK(stages.stage(0).reset(0));
  Tensor uneven(0, whole().cols);
  const size_t sizes[] = {3, 125, 1, 130, 2, 6, 9};
  size_t begin = 0;
  for (const size_t size : sizes) {
    const Tensor part = stages.feed(0, slice(tokens(), begin, begin + size), 512);
    uneven.values.insert(uneven.values.end(), part.values.begin(), part.values.end());
    uneven.rows += part.rows;
    begin += size;
  }
  ASSERT_EQ(begin, kNumTokens);
  EXPECT_TRUE(bitwise_equal(uneven, whole()));
}

TEST_P(InvarianceTest, AnyCutIntoStagesGivesTheSameLogits) {
  for (const std::vector<int32_t>& cuts :
       std::vector<std::vector<int32_t>>{{1}, {2}, {3}, {4}, {5}, {1, 2, 3, 4, 5}}) {
    SCOPED_TRACE(str_cat(cuts.size() + 1, " stages, the second begins at layer ", cuts[0]));
    Stages stages(nano_, cuts, options());
    // Past the window and the first row of each kind of layer; the selection once.
    const size_t end = cuts.size() > 1 ? kNumTokens : 140;
    EXPECT_TRUE(
        bitwise_equal(stages.feed(0, slice(tokens(), 0, end), 100), rows_of(whole(), 0, end)));
  }
}

TEST_P(InvarianceTest, BanksThatShareStepsDoNotTouchEachOther) {
  // The same text, the same text reversed and a detour, in steps that mix all three.
  std::vector<int32_t> reversed(tokens().rbegin(), tokens().rend());
  const std::vector<std::vector<int32_t>> sequences = {tokens(), reversed, detour(200)};
  const int32_t banks[] = {3, 0, 2};
  Stages alone(nano_, {}, options());
  std::vector<Tensor> expected;
  for (const auto& sequence : sequences) {
    ASSERT_OK(alone.stage(0).reset(1));
    expected.push_back(alone.feed(1, sequence, 512));
  }

  Stages mixed(nano_, {2}, options());
  std::vector<Tensor> actual(3, Tensor(0, whole().cols));
  const size_t sizes[][3] = {{1, 70, 9}, {64, 1, 1}, {0, 128, 0}, {130, 3, 50}, {7, 0, 33}};
  size_t done[3] = {0, 0, 0};
  for (size_t round = 0; done[0] < kNumTokens || done[1] < kNumTokens || done[2] < 200; ++round) {
    std::vector<Feed> feeds;
    std::vector<size_t> order;
    for (size_t k = 0; k < 3; ++k) {
      const size_t s = (k + round) % 3;  // another order of the banks in each step
      const size_t end = std::min(sequences[s].size(), done[s] + sizes[round % 5][s]);
      if (end == done[s]) continue;
      feeds.push_back({banks[s], slice(sequences[s], done[s], end)});
      order.push_back(s);
      done[s] = end;
    }
    if (feeds.empty()) continue;
    const Tensor logits = mixed.step(feeds);
    int64_t row = 0;
    for (size_t k = 0; k < feeds.size(); ++k) {
      Tensor& to = actual[order[k]];
      const auto count = static_cast<int64_t>(feeds[k].tokens.size());
      to.values.insert(to.values.end(), logits.row(row), logits.row(row) + count * logits.cols);
      to.rows += count;
      row += count;
    }
  }
  for (size_t s = 0; s < 3; ++s) {
    EXPECT_TRUE(bitwise_equal(actual[s], expected[s])) << "sequence " << s;
  }
}

TEST_P(InvarianceTest, TheNumberOfThreadsChangesNothing) {
  for (const int num_threads : {1, 3}) {
    Stages stages(nano_, {}, options(), num_threads);
    const Tensor head = stages.feed(0, slice(tokens(), 0, kCut), kCut);
    EXPECT_TRUE(bitwise_equal(head, rows_of(whole(), 0, kCut))) << num_threads << " threads";
    const Tensor tail = stages.feed(0, slice(tokens(), kCut, kNumTokens), 1);
    EXPECT_TRUE(bitwise_equal(tail, rows_of(whole(), kCut, kNumTokens))) << num_threads;
  }
}

TEST_P(InvarianceTest, ASavedBankContinuesElsewhere) {
  for (const size_t cut : {size_t{1}, size_t{128}, kCut}) {
    SCOPED_TRACE(str_cat("saved at ", cut));
    Stages first(nano_, {3}, options());
    first.feed(1, slice(tokens(), 0, cut), 100);
    Stages second(nano_, {3}, options());
    second.feed(2, detour(150), 150);  // what it held before is forgotten
    for (size_t s = 0; s < first.num_stages(); ++s) {
      MemoryStream stream;
      ASSERT_OK(first.stage(s).save(1, stream));
      ASSERT_OK(second.stage(s).load(2, stream));
      EXPECT_EQ(stream.position, stream.bytes.size());
      // Only what is needed was saved, so nothing before it can be brought back.
      if (cut > 1) {
        EXPECT_ERROR(
            second.stage(s).truncate(2, static_cast<int64_t>(cut) - 1), StatusCode::kAborted, "");
      }
    }
    expect_continues(second, 2, cut);
    expect_continues(first, 1, cut);  // saving left it alone
  }
}

TEST_P(InvarianceTest, AForkContinuesAndCanBeTruncated) {
  Stages stages(nano_, {4}, options());
  stages.feed(0, slice(tokens(), 0, kCut), 64);
  stages.feed(2, detour(50), 50);
  ASSERT_OK(stages.each([](LocalStage& stage) { return stage.fork(0, 2); }));
  ASSERT_OK(stages.each([](LocalStage& stage) { return stage.fork(0, 3); }));
  expect_continues(stages, 2, kCut);
  stages.feed(0, detour(17), 17);  // the fork does not see what the original does
  ASSERT_OK(stages.each([](LocalStage& stage) { return stage.truncate(3, kCut - 33); }));
  expect_continues(stages, 3, kCut - 33);
}

TEST_P(InvarianceTest, ATruncatedBankContinues) {
  Stages stages(nano_, {}, options());
  LocalStage& stage = stages.stage(0);
  const std::pair<int64_t, size_t> cases[] = {
      {1, kCut}, {kRewind, kCut}, {3, 256}, {29, 127}, {kRewind, 6}};
  for (const auto& [back, keep] : cases) {
    SCOPED_TRACE(str_cat("back by ", back, " to ", keep));
    ASSERT_OK(stage.reset(0));
    stages.feed(0, slice(tokens(), 0, keep), 512);
    stages.feed(0, detour(static_cast<size_t>(back)), 7);
    ASSERT_OK(stage.truncate(0, static_cast<int64_t>(keep)));
    expect_continues(stages, 0, keep);
  }
}

TEST_P(InvarianceTest, ATruncationInTwoStepsIsBoundedByTheRewind) {
  Stages stages(nano_, {}, options());
  LocalStage& stage = stages.stage(0);
  stages.feed(0, slice(tokens(), 0, kCut), 512);
  stages.feed(0, detour(kRewind + 1), 20);
  EXPECT_ERROR(stage.truncate(0, kCut), StatusCode::kAborted, "41");
  ASSERT_EQ(
      stages.length(0), static_cast<int64_t>(kCut) + kRewind + 1);  // a refusal changes nothing
  ASSERT_OK(stage.truncate(0, kCut + 20));
  ASSERT_OK(stage.truncate(0, kCut + 1));
  EXPECT_ERROR(stage.truncate(0, kCut), StatusCode::kAborted, "");
  // New tokens can be taken back again, the old ones cannot.
  stages.feed(0, detour(10), 10);
  ASSERT_OK(stage.truncate(0, kCut + 1));
  EXPECT_ERROR(stage.truncate(0, kCut), StatusCode::kAborted, "");
  ASSERT_OK(stage.truncate(0, 0));
  EXPECT_TRUE(bitwise_equal(stages.feed(0, tokens(), 512), whole()));
}

TEST_P(InvarianceTest, ACheckpointBringsTheBankBackFromAnywhere) {
  Stages stages(nano_, {}, options());
  LocalStage& stage = stages.stage(0);
  stages.feed(0, slice(tokens(), 0, kCut), 512);
  Result<CheckpointId> id = stage.checkpoint(0);
  ASSERT_OK(id);
  stages.feed(0, detour(200), 90);  // the rings have turned over
  ASSERT_OK(stage.restore(0, *id));
  expect_continues(stages, 0, kCut);
  ASSERT_OK(stage.restore(0, *id));        // it is still there
  ASSERT_OK(stage.truncate(0, kCut - 1));  // with the slack that it had
  expect_continues(stages, 0, kCut - 1);
  ASSERT_OK(stage.drop_checkpoint(*id));
  EXPECT_ERROR(stage.restore(0, *id), StatusCode::kNotFound, "checkpoint");
}

TEST_P(InvarianceTest, AResetBankStartsAnew) {
  Stages stages(nano_, {}, options());
  stages.feed(0, detour(300), 300);
  ASSERT_OK(stages.stage(0).reset(0));
  EXPECT_TRUE(bitwise_equal(stages.feed(0, tokens(), 512), whole()));
}

INSTANTIATE_TEST_SUITE_P(
    Paths, InvarianceTest,
    ::testing::Values(
        Param{Numerics::kExact, DType::kF32}, Param{Numerics::kFast, DType::kF16},
        Param{Numerics::kFast, DType::kF32}, Param{Numerics::kFast, DType::kBF16}),
    param_name);

}  // namespace
}  // namespace tandem::test
