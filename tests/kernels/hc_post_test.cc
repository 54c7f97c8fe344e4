#include "kernels/hc_post/hc_post.h"

#include <algorithm>

#include "base/limits.h"
#include "tests/support/backend.h"
#include "tests/support/bounds.h"
#include "tests/support/naive_ops.h"
#include "tests/support/near.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

class HcPostTest : public OpTest {
 protected:
  Tensor run(const Tensor& streams, const Tensor& branch, const Tensor& mix, int64_t s) {
    const Rows out = bench_.in_out(streams);
    EXPECT_OK(hc_post(bench_.exec(), {out, bench_.input(branch), bench_.input(mix), s}));
    return bench_.fetch(out);
  }
};

TEST_P(HcPostTest, MixesHandWorkedStreams) {
  // Two streams of one value: comb = ((1, 2), (3, 4)), so target 0 takes 1 x0 + 3 x1.
  const Tensor mix(1, 6, {10, 100, 1, 2, 3, 4});
  const Tensor out = run(Tensor(1, 2, {5, 7}), Tensor(1, 1, {0.5f}), mix, 2);
  EXPECT_EQ(out.values, (std::vector<float>{5 + 5 + 21, 50 + 10 + 28}));
}

TEST_P(HcPostTest, MatchesFloat64OverShapes) {
  for (const int64_t s : {1, 2, 4, 8}) {
    for (const int64_t hidden_dim : {1, 15, 31, 64, 257, 4096}) {
      for (const int64_t n : {0, 1, 2, 19}) {
        SCOPED_TRACE(str_cat("s=", s, " hidden_dim=", hidden_dim, " n=", n, " seeds 51-53"));
        const Tensor streams = random_tensor(n, s * hidden_dim, 51);
        const Tensor branch = random_tensor(n, hidden_dim, 52);
        const Tensor mix = random_tensor(n, s + s * s, 53);
        Tensor64 expected(n, s * hidden_dim);
        for (int64_t t = 0; t < n; ++t) {
          const Tensor64 x = widen(streams);
          const Tensor64 f = widen(branch);
          naive::HcMix m;
          m.post.assign(mix.row(t), mix.row(t) + s);
          m.comb.assign(mix.row(t) + s, mix.row(t) + s + s * s);
          const naive::Vector row = naive::hc_post(
              {x.row(t), static_cast<size_t>(x.cols)}, {f.row(t), static_cast<size_t>(f.cols)}, m);
          std::copy(row.begin(), row.end(), expected.row(t));
        }
        // s + 1 products of normal values, none larger than 5 * 5; one rounding each.
        const double bound = static_cast<double>(2 * s + 2) * 25 * kF32Unit;
        EXPECT_TRUE(near_all(run(streams, branch, mix, s), expected, bound));
      }
    }
  }
}

TEST_P(HcPostTest, RefusesWhatTheContractExcludes) {
  HcPostArgs good;
  good.streams = bench_.in_out(random_tensor(2, 32, 1));
  good.branch = bench_.input(random_tensor(2, 8, 2));
  good.mix = bench_.input(random_tensor(2, 20, 3));
  good.num_streams = 4;
  EXPECT_OK(hc_post(bench_.exec(), good));
  const auto refuses = [&](const auto& change, const char* text) {
    HcPostArgs args = good;
    change(args);
    EXPECT_ERROR(hc_post(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  refuses([](HcPostArgs& a) { a.num_streams = 0; }, "num_streams");
  refuses([](HcPostArgs& a) { a.num_streams = 9; }, "num_streams");
  refuses([](HcPostArgs& a) { a.num_streams = 2; }, "streams");
  refuses([](HcPostArgs& a) { a.branch.rows = 1; }, "streams");
  refuses([](HcPostArgs& a) { a.mix.cols = 16; }, "mix");
  refuses([](HcPostArgs& a) { a.mix.rows = 1; }, "mix");
  refuses([](HcPostArgs& a) { a.streams.rows = kChunkTokensMax + 1; }, "rows");
}

INSTANTIATE_TEST_SUITE_P(Backends, HcPostTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
