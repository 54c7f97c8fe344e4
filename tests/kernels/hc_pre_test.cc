#include "kernels/hc_pre/hc_pre.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "kernels/hc_pre/hc_post_pre.h"
#include "tests/support/backend.h"
#include "tests/support/bounds.h"
#include "tests/support/naive_ops.h"
#include "tests/support/near.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

struct Case {
  Tensor streams;
  HostWeight fn;
  std::vector<float> scale, base, norm;
  int64_t num_streams = 4;
  int32_t iterations = 20;
};

struct Outputs {
  Tensor normed, mix;
};

Case random_case(DType dtype, int64_t n, int64_t hidden_dim, int64_t s, int32_t iterations) {
  const int64_t num_mix = 2 * s + s * s;
  Case out;
  out.streams = random_tensor(n, s * hidden_dim, 41);
  // The logits are sums of s * hidden_dim products; keep them of the size of 1.
  out.fn = random_weight(
      dtype, num_mix, s * hidden_dim, 42, 1.0f / std::sqrt(static_cast<float>(s * hidden_dim)));
  out.scale = {0.7f, -1.3f, 1.1f};
  out.base = random_vector(num_mix, 43, 0, 0.5f);
  out.norm = random_vector(hidden_dim, 44, 1, 0.2f);
  out.num_streams = s;
  out.iterations = iterations;
  return out;
}

class HcPreTest : public OpTest {
 protected:
  HcPreArgs args_of(const Case& c) {
    const int64_t n = c.streams.rows;
    const int64_t s = c.num_streams;
    HcPreArgs args;
    args.streams = bench_.input(c.streams);
    args.fn = bench_.weight(c.fn);
    args.scale = bench_.vector(c.scale);
    args.base = bench_.vector(c.base);
    args.norm = bench_.vector(c.norm);
    args.normed = bench_.output(n, static_cast<int64_t>(c.norm.size()));
    args.mix = bench_.output(n, s + s * s);
    args.num_streams = s;
    args.sinkhorn_iterations = c.iterations;
    return args;
  }

  Outputs run(const Case& c) {
    const HcPreArgs args = args_of(c);
    EXPECT_OK(hc_pre(bench_.exec(), args));
    return {bench_.fetch(args.normed), bench_.fetch(args.mix)};
  }

  void expect_matches_float64(const Case& c) {
    const Outputs actual = run(c);
    const int64_t s = c.num_streams;
    Tensor64 normed(actual.normed.rows, actual.normed.cols);
    Tensor64 mix(actual.mix.rows, actual.mix.cols);
    for (int64_t t = 0; t < c.streams.rows; ++t) {
      const naive::Vector x(c.streams.row(t), c.streams.row(t) + c.streams.cols);
      const naive::HcMix m =
          naive::hc_mix(x, c.fn.values, c.scale, c.base, s, c.iterations, 1e-6, 1e-6);
      std::copy(m.post.begin(), m.post.end(), mix.row(t));
      std::copy(m.comb.begin(), m.comb.end(), mix.row(t) + s);
      const naive::Vector row = naive::rms_norm(naive::hc_collapse(x, m.pre), c.norm, 1e-6);
      std::copy(row.begin(), row.end(), normed.row(t));
    }
    // A logit is a sum of s * hidden_dim products, each of size 1 / sqrt of that number: float32
    // leaves it off by a few times 2^-24 sqrt(terms). Sigmoid and softmax pass at most that on;
    // each of the Sinkhorn passes adds s + 2 roundings of values below 1.
    const double terms = static_cast<double>(c.streams.cols);
    const double logit = 16 * std::sqrt(terms) * kF32Unit;
    const double passes = 2.0 * c.iterations * static_cast<double>(s + 2) * kF32Unit;
    EXPECT_TRUE(near_all(actual.mix, mix, 2 * logit + passes));
    EXPECT_TRUE(near_rows(actual.normed, normed, 4 * logit + 32 * kF32Unit));
  }
};

TEST_P(HcPreTest, MixesHandWorkedStreams) {
  // fn = 0: pre = 1/2 + eps, post = 1, comb = 1/2 whatever the streams are.
  Case c = random_case(DType::kF32, 1, 2, 2, 20);
  c.streams = Tensor(1, 4, {1, 2, 5, 6});
  c.fn = make_weight(DType::kF32, Tensor(8, 4));
  c.base.assign(8, 0.0f);
  c.norm = {1, 2};
  const Outputs out = run(c);
  EXPECT_TRUE(near_all(out.mix, Tensor64(1, 6, {1, 1, 0.5, 0.5, 0.5, 0.5}), 3e-6));
  // Half the sum is (3, 4), whose root mean square is sqrt(12.5).
  EXPECT_TRUE(near_all(out.normed, Tensor64(1, 2, {0.848528137, 2.262741700}), 1e-6));
}

TEST_P(HcPreTest, OneIterationIsASoftmaxAndOneColumnPass) {
  Case c = random_case(DType::kF32, 1, 2, 2, 1);
  c.fn = make_weight(DType::kF32, Tensor(8, 4));
  c.base = {0, 0, 0, 0, 0, std::log(3.0f), 0, 0};  // row 0 of comb: softmax (1/4, 3/4)
  c.scale = {1, 1, 1};
  const Tensor mix = run(c).mix;
  EXPECT_NEAR(mix.at(0, 2), 0.25 / 0.75, 5e-6);
  EXPECT_NEAR(mix.at(0, 3), 0.75 / 1.25, 5e-6);
  EXPECT_NEAR(mix.at(0, 4), 0.5 / 0.75, 5e-6);
  EXPECT_NEAR(mix.at(0, 5), 0.5 / 1.25, 5e-6);
}

TEST_P(HcPreTest, MatchesFloat64OverShapes) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const int64_t s : {1, 2, 4, 8}) {
      for (const int64_t hidden_dim : {1, 31, 64, 257}) {
        SCOPED_TRACE(str_cat(dtype_name(dtype), " s=", s, " hidden_dim=", hidden_dim));
        expect_matches_float64(random_case(dtype, 2, hidden_dim, s, 20));
      }
    }
    expect_matches_float64(random_case(dtype, 1, 4096, 4, 20));
    expect_matches_float64(random_case(dtype, 37, 64, 4, 3));
  }
}

TEST_P(HcPreTest, MatchesFloat64AroundTheRowsOfATile) {  // of the matrix units; 2,048 columns
  for (const int64_t n : {1, 31, 32, 33, 70}) {
    SCOPED_TRACE(str_cat("n=", n));
    expect_matches_float64(random_case(DType::kF16, n, 512, 4, 20));
  }
  expect_matches_float64(random_case(DType::kF16, 3, 2048, 2, 20));
}

TEST_P(HcPreTest, ColumnsOfTheMixSumToOne) {
  const Tensor mix = run(random_case(DType::kF16, 16, 128, 4, 20)).mix;
  for (int64_t t = 0; t < mix.rows; ++t) {
    for (int64_t k = 0; k < 4; ++k) {
      double column = 0;
      double row = 0;
      for (int64_t j = 0; j < 4; ++j) {
        column += mix.at(t, 4 + 4 * j + k);
        row += mix.at(t, 4 + 4 * k + j);
      }
      EXPECT_NEAR(column, 1.0, 3e-6) << "row " << t << " column " << k;
      EXPECT_NEAR(row, 1.0, 1e-4) << "row " << t << " row of comb " << k;
    }
  }
}

TEST_P(HcPreTest, SurvivesLogitsThatSaturate) {
  Case c = random_case(DType::kF32, 2, 32, 4, 20);
  c.scale = {100, 100, 60};
  const Outputs out = run(c);
  for (const float value : out.mix.values) EXPECT_TRUE(std::isfinite(value));
  for (const float value : out.normed.values) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(HcPreTest, TakesNoRows) {
  EXPECT_EQ(run(random_case(DType::kF32, 0, 8, 4, 20)).mix.rows, 0);
}

TEST_P(HcPreTest, RefusesWhatTheContractExcludes) {
  const HcPreArgs good = args_of(random_case(DType::kF32, 2, 8, 4, 20));
  const auto refuses = [&](const auto& change, const char* text) {
    HcPreArgs args = good;
    change(args);
    EXPECT_ERROR(hc_pre(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  refuses([](HcPreArgs& a) { a.num_streams = 0; }, "num_streams");
  refuses([](HcPreArgs& a) { a.num_streams = 9; }, "num_streams");
  refuses([](HcPreArgs& a) { a.num_streams = 2; }, "hc_pre");
  refuses([](HcPreArgs& a) { a.sinkhorn_iterations = 0; }, "sinkhorn");
  refuses([](HcPreArgs& a) { a.fn.dtype = DType::kQ8_0; }, "Q8_0");
  refuses([](HcPreArgs& a) { a.fn.rows = 23; }, "fn");
  refuses([](HcPreArgs& a) { a.scale.size = 2; }, "scale");
  refuses([](HcPreArgs& a) { a.base.size = 4; }, "base");
  refuses([](HcPreArgs& a) { a.norm.size = 7; }, "streams");
  refuses([](HcPreArgs& a) { a.normed.cols = 7; }, "normed");
  refuses([](HcPreArgs& a) { a.mix.cols = 16; }, "mix");
  refuses([](HcPreArgs& a) { a.streams.rows = kChunkTokensMax + 1; }, "rows");
}

TEST_P(HcPreTest, GivesTheSameBitsBehindAFusedHcPost) {
  for (const int64_t n : {1, 5, 16}) {
    for (const int64_t hidden_dim : {64, 320, 4096}) {
      SCOPED_TRACE(str_cat("n=", n, " hidden_dim=", hidden_dim));
      const Case c = random_case(DType::kF16, n, hidden_dim, 4, 20);
      const ConstRows branch = bench_.input(random_tensor(n, hidden_dim, 45));
      const ConstRows mix = bench_.input(random_tensor(n, 20, 46));
      HcPreArgs apart = args_of(c);
      HcPreArgs fused = args_of(c);
      const HcPostArgs post_apart = {bench_.in_out(c.streams), branch, mix, 4};
      const HcPostArgs post_fused = {bench_.in_out(c.streams), branch, mix, 4};
      apart.streams = post_apart.streams;
      fused.streams = post_fused.streams;
      const bool can_fuse = can_fuse_hc(bench_.exec(), post_fused, fused);
      EXPECT_EQ(can_fuse, GetParam().device == Device::kCuda && GetParam().phase == Phase::kDecode);
      if (!can_fuse) continue;
      ASSERT_OK(hc_post(bench_.exec(), post_apart));
      ASSERT_OK(hc_pre(bench_.exec(), apart));
      ASSERT_OK(hc_post_pre(bench_.exec(), post_fused, fused));
      EXPECT_EQ(bench_.fetch(post_fused.streams).values, bench_.fetch(post_apart.streams).values);
      EXPECT_EQ(bench_.fetch(fused.normed).values, bench_.fetch(apart.normed).values);
      EXPECT_EQ(bench_.fetch(fused.mix).values, bench_.fetch(apart.mix).values);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, HcPreTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
