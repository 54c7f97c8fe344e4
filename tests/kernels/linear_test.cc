#include "kernels/linear/linear.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "tests/support/backend.h"
#include "tests/support/bounds.h"
#include "tests/support/naive_math.h"
#include "tests/support/near.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

class LinearTest : public OpTest {
 protected:
  Tensor run(const Tensor& x, const HostWeight& weight) {
    const Rows out = bench_.output(x.rows, weight.rows);
    EXPECT_OK(linear(bench_.exec(), {bench_.input(x), bench_.weight(weight), out}));
    return bench_.fetch(out);
  }

  void expect_matches_float64(DType dtype, int64_t n, int64_t m, int64_t k) {
    SCOPED_TRACE(str_cat(dtype_name(dtype), " n=", n, " m=", m, " k=", k, " seeds 11, 12"));
    const HostWeight weight = random_weight(dtype, m, k, 11);
    const Tensor x = random_tensor(n, k, 12);
    EXPECT_TRUE(near_each(
        run(x, weight), naive::linear(widen(x), weight.values),
        linear_bound(GetParam(), widen(x), weight)));
  }
};

TEST_P(LinearTest, MultipliesHandWorkedRows) {
  const HostWeight weight = make_weight(DType::kF32, Tensor(2, 3, {1, 2, 3, -1, 0, 4}));
  const Tensor x(2, 3, {1, 10, 100, 0.5f, -2, 1});
  const Tensor64 expected(2, 2, {321, 399, -0.5, 3.5});
  EXPECT_TRUE(near_each(run(x, weight), expected, linear_bound(GetParam(), widen(x), weight)));
}

TEST_P(LinearTest, MatchesFloat64ForEveryTypeAndShape) {
  for (const DType dtype : kWeightDTypes) {
    const int64_t block = std::max(32, block_values(dtype));
    for (const int64_t n : {0, 1, 2, 5}) expect_matches_float64(dtype, n, 7, 3 * block);
    expect_matches_float64(dtype, 33, 130, block);
    expect_matches_float64(dtype, 1, 1, block);
    expect_matches_float64(dtype, 3, 65, 1024);
  }
}

TEST_P(LinearTest, MatchesFloat64AtEveryTailLength) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t k : {1, 2, 7, 15, 16, 17, 31, 33, 63, 65, 257}) {
      expect_matches_float64(dtype, 2, 5, k);
    }
  }
  for (const int64_t k : {32, 64, 96, 160, 288}) {
    expect_matches_float64(DType::kQ8_0, 2, 5, k);
    expect_matches_float64(DType::kMXFP4, 2, 5, k);
  }
}

TEST_P(LinearTest, RowsDoNotDependOnTheirBatch) {
  for (const DType dtype : kWeightDTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    const HostWeight weight = random_weight(dtype, 37, 512, 21);
    // On a GPU up to 16 rows run as decode; longer steps round in another way.
    const int64_t n = GetParam().device == Device::kCuda ? 16 : 19;
    const Tensor x = random_tensor(n, 512, 22);
    const Tensor all = run(x, weight);
    for (const int64_t t : {int64_t{0}, int64_t{7}, n - 1}) {
      Tensor one(1, 512);
      std::copy_n(x.row(t), 512, one.row(0));
      const Tensor alone = run(one, weight);
      EXPECT_EQ(alone.values, std::vector<float>(all.row(t), all.row(t) + 37)) << "row " << t;
    }
  }
}

TEST_P(LinearTest, MultipliesZerosAndDenormalsWithoutNan) {
  for (const DType dtype : kWeightDTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    const HostWeight weight = random_weight(dtype, 4, 256, 31);
    const Tensor zeros(2, 256);
    EXPECT_EQ(run(zeros, weight).values, std::vector<float>(8, 0.0f));
    Tensor tiny(1, 256);
    tiny.values.assign(256, 1e-42f);
    EXPECT_TRUE(near_all(run(tiny, weight), Tensor64(1, 4), 1e-35));
  }
}

TEST_P(LinearTest, RefusesWhatTheContractExcludes) {
  const HostWeight weight = random_weight(DType::kF32, 3, 8, 1);
  const WeightView view = bench_.weight(weight);
  const ConstRows x = bench_.input(random_tensor(2, 8, 2));
  const Rows out = bench_.output(2, 3);
  const auto refuses = [&](ConstRows in, const WeightView& w, Rows to, const char* text) {
    EXPECT_ERROR(linear(bench_.exec(), {in, w, to}), StatusCode::kInvalidArgument, text);
  };
  ConstRows narrow = x;
  narrow.cols = 7;
  refuses(narrow, view, out, "weight");
  Rows short_out = out;
  short_out.cols = 2;
  refuses(x, view, short_out, "weight");
  short_out = out;
  short_out.rows = 1;
  refuses(x, view, short_out, "out");
  Rows overlapping = out;
  overlapping.stride = 2;
  refuses(x, view, overlapping, "out");
  WeightView integers = view;
  integers.dtype = DType::kI32;
  refuses(x, integers, out, "I32");
  ConstRows many = x;
  many.rows = kChunkTokensMax + 1;
  refuses(many, view, out, "rows");
  Rows nowhere = out;
  nowhere.data = nullptr;
  refuses(x, view, nowhere, "out");
  for (const float value : bench_.fetch(out).values) EXPECT_TRUE(std::isnan(value));
}

INSTANTIATE_TEST_SUITE_P(Backends, LinearTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
