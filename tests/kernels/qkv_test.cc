#include "kernels/qkv/qkv.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "tests/support/backend.h"
#include "tests/support/bounds.h"
#include "tests/support/naive_math.h"
#include "tests/support/near.h"
#include "tests/support/rounded.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

struct Case {
  HostStep step;
  Tensor x;
  HostWeight q_a, q_b, kv;
  std::vector<float> q_a_norm, kv_norm, frequencies;
  int64_t num_heads = 0, head_dim = 0;
  RowRounding rounding = RowRounding::kNone;
};

struct Shape {
  DType dtype = DType::kF32;
  int64_t hidden_dim = 64, q_lora_rank = 32, num_heads = 2, head_dim = 96, rotary_dim = 32;
};

struct Outputs {
  Tensor q_latent, q, kv_row;
};

Case random_case(const Shape& s, std::vector<HostStep::Part> parts, RowRounding rounding) {
  Case out;
  out.step.parts = std::move(parts);
  out.x = random_tensor(out.step.num_rows(), s.hidden_dim, 111);
  out.q_a = random_weight(s.dtype, s.q_lora_rank, s.hidden_dim, 112);
  out.q_b = random_weight(s.dtype, s.num_heads * s.head_dim, s.q_lora_rank, 113);
  out.kv = random_weight(s.dtype, s.head_dim, s.hidden_dim, 114);
  out.q_a_norm = random_vector(s.q_lora_rank, 115, 1, 0.3f);
  out.kv_norm = random_vector(s.head_dim, 116, 1, 0.3f);
  out.frequencies = naive::plain_frequencies(10000, s.rotary_dim);
  out.num_heads = s.num_heads;
  out.head_dim = s.head_dim;
  out.rounding = rounding;
  return out;
}

/// Row t in float64; kv_row without its rounding.
struct Expected {
  naive::Vector q_latent, q, kv_row;
};

Expected expected_row(const Case& c, int64_t t) {
  const naive::Vector x(c.x.row(t), c.x.row(t) + c.x.cols);
  const int64_t pos = c.step.positions()[static_cast<size_t>(t)];
  Expected out;
  out.q_latent = naive::rms_norm(naive::linear(x, c.q_a.values), c.q_a_norm, 1e-6);
  out.q = naive::linear(out.q_latent, c.q_b.values);
  for (int64_t h = 0; h < c.num_heads; ++h) {
    const std::span<double> head(out.q.data() + h * c.head_dim, static_cast<size_t>(c.head_dim));
    const double scale = naive::inverse_rms(head, 1e-6);
    for (double& v : head) v *= scale;
    naive::rotate(head, c.frequencies, pos, false);
  }
  out.kv_row = naive::rms_norm(naive::linear(x, c.kv.values), c.kv_norm, 1e-6);
  naive::rotate(out.kv_row, c.frequencies, pos, false);
  return out;
}

class QkvTest : public OpTest {
 protected:
  QkvArgs args_of(const Case& c) {
    const int64_t n = c.x.rows;
    QkvArgs args;
    args.step = bench_.step(c.step);
    args.x = bench_.input(c.x);
    args.q_a = bench_.weight(c.q_a);
    args.q_a_norm = bench_.vector(c.q_a_norm);
    args.q_b = bench_.weight(c.q_b);
    args.kv = bench_.weight(c.kv);
    args.kv_norm = bench_.vector(c.kv_norm);
    args.q_latent = bench_.output(n, c.q_a.rows);
    args.q = bench_.output(n, c.q_b.rows);
    args.kv_row = bench_.output(n, c.head_dim);
    args.rotary = bench_.rotary(c.frequencies);
    args.num_heads = c.num_heads;
    args.head_dim = c.head_dim;
    args.rounding = c.rounding;
    return args;
  }

  Outputs run(const Case& c) {
    const QkvArgs args = args_of(c);
    EXPECT_OK(qkv(bench_.exec(), args));
    return {bench_.fetch(args.q_latent), bench_.fetch(args.q), bench_.fetch(args.kv_row)};
  }

  void expect_matches_float64(const Case& c) {
    const Outputs actual = run(c);
    Tensor64 q_latent(c.x.rows, c.q_a.rows);
    Tensor64 q(c.x.rows, c.q_b.rows);
    Tensor64 kv(c.x.rows, c.head_dim);
    for (int64_t t = 0; t < c.x.rows; ++t) {
      const Expected e = expected_row(c, t);
      std::copy(e.q_latent.begin(), e.q_latent.end(), q_latent.row(t));
      std::copy(e.q.begin(), e.q.end(), q.row(t));
      std::copy(e.kv_row.begin(), e.kv_row.end(), kv.row(t));
    }
    const Backend backend = GetParam();
    EXPECT_TRUE(near_rows(actual.q_latent, q_latent, chain_bound(backend, 1, c.x.cols)));
    EXPECT_TRUE(near_rows(actual.q, q, chain_bound(backend, 2, std::max(c.x.cols, c.q_a.rows))));
    if (c.rounding == RowRounding::kNone) {
      EXPECT_TRUE(near_rows(actual.kv_row, kv, chain_bound(backend, 1, c.x.cols)));
      return;
    }
    for (int64_t t = 0; t < c.x.rows; ++t) {
      RoundedRow row;
      row.unrounded.assign(kv.row(t), kv.row(t) + kv.cols);
      row.tolerance = 8 * chain_bound(backend, 1, c.x.cols);  // the row's values are of size 1
      row.rounding = c.rounding;
      row.num_rounded = c.head_dim - 2 * static_cast<int64_t>(c.frequencies.size());
      EXPECT_TRUE(is_rounding_of({actual.kv_row.row(t), static_cast<size_t>(c.head_dim)}, row))
          << "row " << t;
    }
  }
};

TEST_P(QkvTest, ProjectsAHandWorkedRow) {
  // x = (3, 4), identity weights: q_latent = (3, 4) / sqrt(12.5) * norm. The head has one pair,
  // rotated by pos = 2 with frequency 1/2: by one radian.
  Case c;
  c.step.parts = {{0, 2, 1}};
  c.x = Tensor(1, 2, {3, 4});
  const HostWeight identity = make_weight(DType::kF32, Tensor(2, 2, {1, 0, 0, 1}));
  c.q_a = c.q_b = c.kv = identity;
  c.q_a_norm = {1, 1};
  c.kv_norm = {1, 2};
  c.frequencies = {0.5f};
  c.num_heads = 1;
  c.head_dim = 2;
  const Outputs out = run(c);
  const double a = 3 / std::sqrt(12.5);
  const double b = 4 / std::sqrt(12.5);
  const double cosine = std::cos(1.0);
  const double sine = std::sin(1.0);
  const double tolerance = GetParam().exact() ? 2e-6 : 0.02;
  EXPECT_TRUE(near_all(out.q_latent, Tensor64(1, 2, {a, b}), tolerance));
  EXPECT_TRUE(
      near_all(out.q, Tensor64(1, 2, {a * cosine - b * sine, a * sine + b * cosine}), tolerance));
  EXPECT_TRUE(near_all(
      out.kv_row, Tensor64(1, 2, {a * cosine - 2 * b * sine, a * sine + 2 * b * cosine}),
      tolerance));
}

TEST_P(QkvTest, MatchesFloat64OverTypesAndShapes) {
  const std::vector<HostStep::Part> parts = {{1, 7, 2}, {0, 126, 4}, {3, 0, 1}};
  for (const RowRounding rounding : {RowRounding::kNone, RowRounding::kFp8}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
      SCOPED_TRACE(dtype_name(dtype));
      expect_matches_float64(random_case({dtype, 64, 32, 2, 96, 32}, parts, rounding));
    }
    expect_matches_float64(random_case({DType::kQ4_K, 256, 256, 4, 512, 64}, parts, rounding));
    expect_matches_float64(random_case({DType::kQ6_K, 512, 256, 3, 512, 64}, parts, rounding));
    expect_matches_float64(random_case({DType::kF32, 31, 17, 5, 66, 2}, {{0, 0, 1}}, rounding));
    expect_matches_float64(random_case({DType::kQ8_0, 96, 64, 1, 128, 64}, {{0, 3, 33}}, rounding));
  }
  const Shape no_pass{DType::kF32, 16, 8, 2, 64, 64};  // a head that is rotated throughout
  expect_matches_float64(random_case(no_pass, parts, RowRounding::kNone));
}

TEST_P(QkvTest, StaysAccurateAtTheEndOfTheContext) {
  expect_matches_float64(random_case(
      {DType::kF32, 64, 32, 2, 512, 64}, {{0, kContextTokensMax - 2, 2}}, RowRounding::kFp8));
}

TEST_P(QkvTest, TakesNoRows) {
  EXPECT_EQ(run(random_case({}, {}, RowRounding::kFp8)).q.rows, 0);
}

TEST_P(QkvTest, RefusesWhatTheContractExcludes) {
  const QkvArgs good = args_of(random_case({}, {{0, 0, 2}}, RowRounding::kFp8));
  const auto refuses = [&](const auto& change, const char* text) {
    QkvArgs args = good;
    change(args);
    EXPECT_ERROR(qkv(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  refuses([](QkvArgs& a) { a.x.cols = 63; }, "x");
  refuses([](QkvArgs& a) { a.x.rows = 1; }, "x");
  refuses([](QkvArgs& a) { a.q_a.rows = 31; }, "q_a");
  refuses([](QkvArgs& a) { a.q_a_norm.size = 31; }, "q_a");
  refuses([](QkvArgs& a) { a.q_b.cols = 31; }, "q_b");
  refuses([](QkvArgs& a) { a.num_heads = 3; }, "q_b");
  refuses([](QkvArgs& a) { a.kv.rows = 95; }, "kv");
  refuses([](QkvArgs& a) { a.kv_norm.size = 95; }, "kv_norm");
  refuses([](QkvArgs& a) { a.q_latent.cols = 31; }, "q_latent");
  refuses([](QkvArgs& a) { a.q.cols = 191; }, "q");
  refuses([](QkvArgs& a) { a.kv_row.rows = 1; }, "kv_row");
  refuses([](QkvArgs& a) { a.rotary.dim = 98; }, "rotary");
  refuses([](QkvArgs& a) { a.rotary.dim = 31; }, "rotary");
  refuses([](QkvArgs& a) { a.rotary.dim = 30; }, "64");
  refuses([](QkvArgs& a) { a.rounding = RowRounding::kHadamardFp4; }, "FP8");
  refuses([](QkvArgs& a) { a.step.num_rows = kChunkTokensMax + 1; }, "rows");
}

INSTANTIATE_TEST_SUITE_P(Backends, QkvTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
