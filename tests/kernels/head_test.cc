#include "kernels/head/head.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "tests/support/backend.h"
#include "tests/support/bounds.h"
#include "tests/support/naive_ops.h"
#include "tests/support/near.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

struct Case {
  HostStep step;
  Tensor streams;
  HostWeight fn, output;
  std::vector<float> scale, base, norm;
  int64_t num_streams = 4;
};

Case random_case(
    DType fn, DType output, int32_t n, int64_t hidden_dim, int64_t s, int64_t vocab,
    std::vector<int32_t> logit_rows) {
  Case out;
  out.step.parts = {{0, 9, n}};
  out.step.logit_rows = std::move(logit_rows);
  out.streams = random_tensor(n, s * hidden_dim, 61);
  out.fn = random_weight(
      fn, s, s * hidden_dim, 62, 1.0f / std::sqrt(static_cast<float>(s * hidden_dim)));
  out.output = random_weight(output, vocab, hidden_dim, 63, 0.1f);
  out.scale = {0.8f};
  out.base = random_vector(s, 64, 0, 0.5f);
  out.norm = random_vector(hidden_dim, 65, 1, 0.2f);
  out.num_streams = s;
  return out;
}

class HeadTest : public OpTest {
 protected:
  HeadArgs args_of(const Case& c) {
    HeadArgs args;
    args.step = bench_.step(c.step);
    args.streams = bench_.input(c.streams);
    args.fn = bench_.weight(c.fn);
    args.scale = bench_.vector(c.scale);
    args.base = bench_.vector(c.base);
    args.norm = bench_.vector(c.norm);
    args.output = bench_.weight(c.output);
    args.logits = bench_.output(args.step.num_logits, c.output.rows);
    args.num_streams = c.num_streams;
    return args;
  }

  void expect_matches_float64(const Case& c) {
    const HeadArgs args = args_of(c);
    ASSERT_OK(head(bench_.exec(), args));
    const Tensor actual = bench_.fetch(args.logits);
    Tensor64 rows(actual.rows, c.output.cols);
    for (int64_t i = 0; i < actual.rows; ++i) {
      const float* from = c.streams.row(c.step.logit_rows[static_cast<size_t>(i)]);
      const naive::Vector x(from, from + c.streams.cols);
      const naive::Vector row =
          naive::head_row(x, c.fn.values, c.scale[0], c.base, c.norm, 1e-6, 1e-6);
      std::copy(row.begin(), row.end(), rows.row(i));
    }
    Tensor64 bound = linear_bound(GetParam(), rows, c.output);
    // The row itself: float32, as in hc_pre.
    const double relative = 64 * std::sqrt(static_cast<double>(c.streams.cols)) * kF32Unit;
    for (int64_t i = 0; i < actual.rows; ++i) {
      for (int64_t v = 0; v < actual.cols; ++v) {
        for (int64_t d = 0; d < rows.cols; ++d) {
          bound.at(i, v) += relative * std::fabs(rows.at(i, d) * c.output.values.at(v, d));
        }
      }
    }
    EXPECT_TRUE(near_each(actual, naive::linear(rows, c.output.values), bound));
  }
};

TEST_P(HeadTest, ProjectsHandWorkedStreams) {
  // fn = base = 0: pre = 1/2, so two streams give half their sum (3, 4).
  Case c = random_case(DType::kF32, DType::kF32, 2, 2, 2, 2, {1});
  c.streams = Tensor(2, 4, {9, 9, 9, 9, 1, 2, 5, 6});
  c.fn = make_weight(DType::kF32, Tensor(2, 4));
  c.base = {0, 0};
  c.norm = {1, 1};
  c.output = make_weight(DType::kF32, Tensor(2, 2, {1, 0, 1, -1}));
  const HeadArgs args = args_of(c);
  ASSERT_OK(head(bench_.exec(), args));
  const double tolerance = GetParam().exact() ? 1e-6 : 0.01;  // bf16: 2^-8 of values up to 1.2
  EXPECT_TRUE(
      near_all(bench_.fetch(args.logits), Tensor64(1, 2, {0.848528137, -0.282842712}), tolerance));
}

TEST_P(HeadTest, MatchesFloat64OverTypesAndShapes) {
  for (const DType output :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ6_K, DType::kQ4_K}) {
    for (const DType fn : {DType::kF32, DType::kF16}) {
      SCOPED_TRACE(str_cat(dtype_name(output), " ", dtype_name(fn), " seeds 61-65"));
      expect_matches_float64(random_case(fn, output, 5, 256, 4, 97, {0, 2, 4}));
    }
  }
  for (const int64_t s : {1, 2, 8}) {
    expect_matches_float64(random_case(DType::kF16, DType::kQ8_0, 3, 96, s, 33, {0, 1, 2}));
  }
  expect_matches_float64(random_case(DType::kF32, DType::kF32, 1, 31, 4, 1, {0}));
}

TEST_P(HeadTest, TakesStepsThatWantNoLogits) {
  expect_matches_float64(random_case(DType::kF16, DType::kQ8_0, 3, 32, 4, 33, {}));
}

TEST_P(HeadTest, RefusesWhatTheContractExcludes) {
  const HeadArgs good = args_of(random_case(DType::kF16, DType::kQ8_0, 3, 32, 4, 33, {0, 2}));
  const auto refuses = [&](const auto& change, const char* text) {
    HeadArgs args = good;
    change(args);
    EXPECT_ERROR(head(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  refuses([](HeadArgs& a) { a.num_streams = 0; }, "num_streams");
  refuses([](HeadArgs& a) { a.num_streams = 9; }, "num_streams");
  refuses([](HeadArgs& a) { a.num_streams = 2; }, "streams");
  refuses([](HeadArgs& a) { a.streams.rows = 2; }, "streams");
  refuses([](HeadArgs& a) { a.fn.rows = 3; }, "fn");
  refuses([](HeadArgs& a) { a.scale.size = 3; }, "scale");
  refuses([](HeadArgs& a) { a.base.size = 3; }, "base");
  refuses([](HeadArgs& a) { a.norm.size = 31; }, "streams");
  refuses([](HeadArgs& a) { a.output.cols = 64; }, "output");
  refuses([](HeadArgs& a) { a.logits.cols = 32; }, "output");
  refuses([](HeadArgs& a) { a.logits.rows = 1; }, "logits");
}

INSTANTIATE_TEST_SUITE_P(Backends, HeadTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
