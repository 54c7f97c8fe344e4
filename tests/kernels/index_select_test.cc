#include "kernels/index_select/index_select.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "tests/support/backend.h"
#include "tests/support/bounds.h"
#include "tests/support/naive_ops.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

constexpr int64_t kNumBanks = 3;

struct Case {
  int64_t num_heads = 4;
  int64_t head_dim = 128;
  int64_t rotary_dim = 64;
  int64_t hidden_dim = 64;
  int64_t q_lora_rank = 32;
  int64_t ratio = 4;
  int64_t top_k = 8;
  DType weights = DType::kF32;
  DType rows = DType::kF32;
  RowRounding rounding = RowRounding::kNone;
  std::vector<HostStep::Part> parts;
};

struct Tensors {
  HostStep step;
  Tensor x, q_latent;
  HostWeight q_b, weights;
  HostSlab rows;
  std::vector<float> frequencies;
};

/// Rows that are visible to the step are random (FP4 values if the queries are), others NaN.
Tensors random_tensors(const Case& c) {
  HostStep step;
  step.parts = c.parts;
  int64_t end = 0;
  for (const HostStep::Part& part : c.parts) {
    end = std::max<int64_t>(end, part.first_pos + part.num_rows);
  }
  const int64_t n = step.num_rows();
  Tensors out{
      step,
      random_tensor(n, c.hidden_dim, 131),
      random_tensor(n, c.q_lora_rank, 132),
      random_weight(c.weights, c.num_heads * c.head_dim, c.q_lora_rank, 133),
      random_weight(c.weights, c.num_heads, c.hidden_dim, 134),
      HostSlab(c.rows, kNumBanks, end / c.ratio + 1, c.head_dim),
      naive::yarn_frequencies(160000, c.rotary_dim, 16, 65536, 32, 1)};
  for (const HostStep::Part& part : c.parts) {
    const int64_t count = (part.first_pos + part.num_rows) / c.ratio;
    const Tensor values = random_tensor(count, c.head_dim, 135 + static_cast<uint64_t>(part.bank));
    for (int64_t t = 0; t < count; ++t) {
      std::vector<double> row(values.row(t), values.row(t) + c.head_dim);
      if (c.rounding == RowRounding::kHadamardFp4) naive::round_fp4(row);
      const std::vector<float> narrow(row.begin(), row.end());
      out.rows.set(part.bank, t, narrow.data());
    }
  }
  return out;
}

class IndexSelectTest : public OpTest {
 protected:
  IndexSelectArgs args_of(const Case& c, const Tensors& tensors) {
    IndexSelectArgs args;
    args.step = bench_.step(tensors.step);
    args.x = bench_.input(tensors.x);
    args.q_latent = bench_.input(tensors.q_latent);
    args.q_b = bench_.weight(tensors.q_b);
    args.weights = bench_.weight(tensors.weights);
    args.rows = bench_.slab(tensors.rows);
    args.rotary = bench_.rotary(tensors.frequencies);
    args.selection = bench_.int_output(tensors.x.rows, c.top_k);
    args.num_heads = c.num_heads;
    args.head_dim = c.head_dim;
    args.ratio = c.ratio;
    args.top_k = c.top_k;
    args.rounding = c.rounding;
    return args;
  }

  IntTensor run(const Case& c, const Tensors& tensors) {
    const IndexSelectArgs args = args_of(c, tensors);
    EXPECT_OK(index_select(bench_.exec(), args));
    return bench_.fetch(args.selection);
  }

  static naive::Vector scores_of(const Case& c, const Tensors& tensors, int64_t t) {
    const auto row = static_cast<size_t>(t);
    const int64_t pos = tensors.step.positions()[row];
    const int64_t bank = tensors.step.banks()[row];
    const Tensor64 x = widen(tensors.x);
    const Tensor64 latent = widen(tensors.q_latent);
    naive::Vector q =
        naive::linear({latent.row(t), static_cast<size_t>(latent.cols)}, tensors.q_b.values);
    for (int64_t h = 0; h < c.num_heads; ++h) {
      const std::span<double> head(q.data() + h * c.head_dim, static_cast<size_t>(c.head_dim));
      naive::rotate(head, tensors.frequencies, pos, false);
      if (c.rounding == RowRounding::kHadamardFp4) {
        naive::hadamard(head);
        naive::round_fp4(head);
      }
    }
    const naive::Vector w =
        naive::linear({x.row(t), static_cast<size_t>(x.cols)}, tensors.weights.values);
    naive::Vector scores;
    for (int64_t j = 0; j < (pos + 1) / c.ratio; ++j) {
      const std::vector<float> narrow = tensors.rows.get(bank, j);
      const naive::Vector index_row(narrow.begin(), narrow.end());
      scores.push_back(naive::index_score(q, index_row, w));
    }
    return scores;
  }

  /// The selection is ascending, of the right size, ended by -1, and no unselected score exceeds a
  /// selected one by more than the scores' error.
  void expect_selects_highest(const Case& c) {
    const Tensors tensors = random_tensors(c);
    const IntTensor selection = run(c, tensors);
    for (int64_t t = 0; t < selection.rows; ++t) {
      SCOPED_TRACE(str_cat("row ", t));
      const naive::Vector scores = scores_of(c, tensors, t);
      const auto count = static_cast<int64_t>(scores.size());
      const int64_t num_selected = std::min(count, c.top_k);
      const std::span<const int32_t> ids(selection.row(t), static_cast<size_t>(num_selected));
      for (int64_t k = num_selected; k < c.top_k; ++k) EXPECT_EQ(selection.at(t, k), -1);
      std::vector<bool> chosen(scores.size());
      for (size_t k = 0; k < ids.size(); ++k) {
        ASSERT_GE(ids[k], 0);
        ASSERT_LT(ids[k], count);
        if (k > 0) {
          ASSERT_LT(ids[k - 1], ids[k]);
        }
        chosen[static_cast<size_t>(ids[k])] = true;
      }
      double spread = 0;
      for (const double s : scores) spread = std::max(spread, std::fabs(s));
      double lowest_chosen = 1e300;
      double highest_other = -1e300;
      for (size_t j = 0; j < scores.size(); ++j) {
        if (chosen[j]) lowest_chosen = std::min(lowest_chosen, scores[j]);
        if (!chosen[j]) highest_other = std::max(highest_other, scores[j]);
      }
      EXPECT_GE(lowest_chosen, highest_other - spread * score_error(c));
    }
  }

  /// Relative to the largest score. Fast paths round the query's projection to 8 bits, which also
  /// flips FP4 codes near a tie: the query's noise is then that of a few per cent of its values
  /// being a code (a quarter) off.
  double score_error(const Case& c) const {
    if (GetParam().exact()) return 64 * std::sqrt(static_cast<double>(c.head_dim)) * kF32Unit;
    return c.rounding == RowRounding::kNone ? 0.03 : 0.1;
  }
};

TEST_P(IndexSelectTest, SelectsHandWorkedRows) {
  // One head, q = (1, 0) at position 11 of ratio 1 (12 visible rows), weight -1: the score of row t
  // is -max(0, row_t[0]), so rows with the smallest or a negative first value win.
  Case c;
  c.num_heads = 1;
  c.head_dim = 2;
  c.rotary_dim = 2;
  c.hidden_dim = 1;
  c.q_lora_rank = 1;
  c.ratio = 1;
  c.top_k = 3;
  c.parts = {{0, 11, 1}};
  Tensors tensors = random_tensors(c);
  tensors.x = Tensor(1, 1, {1});
  tensors.q_latent = Tensor(1, 1, {1});
  tensors.q_b = make_weight(DType::kF32, Tensor(2, 1, {1, 0}));
  tensors.weights = make_weight(DType::kF32, Tensor(1, 1, {-1}));
  tensors.frequencies = {0.0f};
  const float first[] = {5, 4, 9, 1, 7, 8, -3, 6, 0.5f, 3, 2, 10};
  for (int64_t t = 0; t < 12; ++t) {
    const float row[] = {first[t], 0};
    tensors.rows.set(0, t, row);
  }
  EXPECT_EQ(run(c, tensors).values, (std::vector<int32_t>{3, 6, 8}));
}

TEST_P(IndexSelectTest, NothingIsScoredWhileEverythingFits) {
  Case c;
  c.top_k = 8;
  c.parts = {{0, 0, 36}};  // counts 0 ... 9
  Tensors tensors = random_tensors(c);
  const IntTensor selection = run(c, tensors);
  for (int32_t t = 0; t < 35; ++t) {
    const int32_t count = (t + 1) / 4;
    for (int32_t k = 0; k < 8; ++k) {
      EXPECT_EQ(selection.at(t, k), k < count ? k : -1) << "row " << t << " place " << k;
    }
  }
}

TEST_P(IndexSelectTest, SelectsTheHighestAroundTopK) {
  for (const RowRounding rounding : {RowRounding::kNone, RowRounding::kHadamardFp4}) {
    for (const int64_t top_k : {1, 7, 8, 9, 64}) {
      SCOPED_TRACE(str_cat("top_k=", top_k, " rounding ", static_cast<int>(rounding)));
      Case c;
      c.top_k = top_k;
      c.rounding = rounding;
      const auto edge = static_cast<int32_t>(4 * top_k);
      // Counts top_k - 1, top_k and top_k + 1, then far more.
      c.parts = {{1, edge - 1, 10}, {0, edge + 700, 3}};
      expect_selects_highest(c);
    }
  }
}

TEST_P(IndexSelectTest, MatchesFloat64OverTypesAndShapes) {
  for (const DType weights : {DType::kF16, DType::kBF16, DType::kQ8_0}) {
    for (const DType rows : {DType::kF32, DType::kF16, DType::kBF16}) {
      SCOPED_TRACE(str_cat(dtype_name(weights), " ", dtype_name(rows)));
      Case c;
      c.weights = weights;
      c.rows = rows;
      c.rounding = RowRounding::kHadamardFp4;
      c.parts = {{2, 201, 5}};
      expect_selects_highest(c);
    }
  }
  Case odd;
  odd.num_heads = 3;
  odd.head_dim = 10;
  odd.rotary_dim = 4;
  odd.hidden_dim = 17;
  odd.q_lora_rank = 13;
  odd.ratio = 3;
  odd.top_k = 5;
  odd.parts = {{0, 100, 7}, {2, 13, 4}};
  expect_selects_highest(odd);
  Case large;  // as in V4 Flash
  large.num_heads = 64;
  large.q_lora_rank = 64;
  large.top_k = 512;
  large.rounding = RowRounding::kHadamardFp4;
  large.parts = {{0, 4099, 1}};
  expect_selects_highest(large);
}

TEST_P(IndexSelectTest, TheLowerIndexWinsATie) {
  Case c;
  c.top_k = 6;
  c.rounding = RowRounding::kHadamardFp4;
  c.parts = {{0, 399, 1}};  // 100 rows of 5 kinds
  Tensors tensors = random_tensors(c);
  for (int64_t t = 5; t < 100; ++t) tensors.rows.set(0, t, tensors.rows.get(0, t % 5).data());
  const naive::Vector scores = scores_of(c, tensors, 0);
  const auto best =
      static_cast<int32_t>(std::max_element(scores.begin(), scores.begin() + 5) - scores.begin());
  std::vector<int32_t> expected;
  for (int32_t k = 0; k < 6; ++k) expected.push_back(best + 5 * k);
  EXPECT_EQ(run(c, tensors).values, expected);
  // Scores of 0 for all rows: the first ones.
  std::fill(tensors.x.values.begin(), tensors.x.values.end(), 0.0f);
  EXPECT_EQ(run(c, tensors).values, (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
}

TEST_P(IndexSelectTest, TakesNoRows) {
  const Case c;
  EXPECT_EQ(run(c, random_tensors(c)).rows, 0);
}

TEST_P(IndexSelectTest, RefusesWhatTheContractExcludes) {
  Case c;
  c.parts = {{0, 0, 2}};
  const IndexSelectArgs good = args_of(c, random_tensors(c));
  const auto refuses = [&](const auto& change, const char* text) {
    IndexSelectArgs args = good;
    change(args);
    EXPECT_ERROR(index_select(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  refuses([](IndexSelectArgs& a) { a.top_k = 0; }, "top_k");
  refuses([](IndexSelectArgs& a) { a.top_k = 9; }, "selection");
  refuses([](IndexSelectArgs& a) { a.ratio = 0; }, "ratio");
  refuses([](IndexSelectArgs& a) { a.x.cols = 63; }, "x");
  refuses([](IndexSelectArgs& a) { a.x.rows = 1; }, "x");
  refuses([](IndexSelectArgs& a) { a.q_latent.cols = 31; }, "q_latent");
  refuses([](IndexSelectArgs& a) { a.q_b.rows = 511; }, "q_b");
  refuses([](IndexSelectArgs& a) { a.num_heads = 3; }, "q_b");
  refuses([](IndexSelectArgs& a) { a.weights.rows = 3; }, "weights");
  refuses([](IndexSelectArgs& a) { a.rows.row_values = 64; }, "rows");
  refuses([](IndexSelectArgs& a) { a.rows.data = nullptr; }, "rows");
  refuses([](IndexSelectArgs& a) { a.selection.rows = 1; }, "selection");
  refuses([](IndexSelectArgs& a) { a.rounding = RowRounding::kFp8; }, "FP8");
  refuses([](IndexSelectArgs& a) { a.rotary.dim = 130; }, "rotary");
  refuses([](IndexSelectArgs& a) { a.step.num_rows = kChunkTokensMax + 1; }, "rows");

  Case odd = c;  // no transform of 96 values
  odd.head_dim = 96;
  IndexSelectArgs args = args_of(odd, random_tensors(odd));
  args.rounding = RowRounding::kHadamardFp4;
  EXPECT_ERROR(index_select(bench_.exec(), args), StatusCode::kInvalidArgument, "power of two");
}

INSTANTIATE_TEST_SUITE_P(
    Backends, IndexSelectTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
