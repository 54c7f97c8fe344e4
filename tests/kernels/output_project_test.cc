#include "kernels/output_project/output_project.h"

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

class OutputProjectTest : public OpTest {
 protected:
  Tensor run(const Tensor& heads, const HostWeight& o_a, const HostWeight& o_b, int64_t groups) {
    const Rows out = bench_.output(heads.rows, o_b.rows);
    EXPECT_OK(output_project(
        bench_.exec(), {bench_.input(heads), bench_.weight(o_a), bench_.weight(o_b), out, groups}));
    return bench_.fetch(out);
  }
};

TEST_P(OutputProjectTest, ProjectsHandWorkedGroups) {
  // Two groups of two values and rank 1: low = (1 + 2, 3 - 4), out = (low0 + low1, 10 low0).
  const HostWeight o_a = make_weight(DType::kF32, Tensor(2, 2, {1, 1, 1, -1}));
  const HostWeight o_b = make_weight(DType::kF32, Tensor(2, 2, {1, 1, 10, 0}));
  const Tensor out = run(Tensor(1, 4, {1, 2, 3, 4}), o_a, o_b, 2);
  EXPECT_EQ(out.values, (std::vector<float>{2, 30}));  // exact in bf16 too
}

TEST_P(OutputProjectTest, MatchesFloat64OverTypesAndShapes) {
  struct Shape {
    DType dtype;
    int64_t n, groups, group_dim, rank, hidden_dim;
  };
  const Shape shapes[] = {
      {DType::kF32, 0, 2, 16, 4, 8},     {DType::kF32, 1, 1, 31, 3, 5},
      {DType::kF32, 2, 3, 33, 7, 17},    {DType::kF16, 5, 2, 64, 32, 40},
      {DType::kBF16, 2, 2, 64, 32, 40},  {DType::kQ8_0, 1, 2, 1024, 128, 256},
      {DType::kQ8_0, 7, 8, 96, 32, 65},  {DType::kQ4_K, 3, 2, 512, 256, 64},
      {DType::kQ6_K, 3, 4, 256, 64, 64}, {DType::kQ8_0, 33, 2, 64, 64, 64},
  };
  for (const Shape& s : shapes) {
    SCOPED_TRACE(str_cat(
        dtype_name(s.dtype), " n=", s.n, " groups=", s.groups, " group_dim=", s.group_dim,
        " rank=", s.rank, " hidden_dim=", s.hidden_dim, " seeds 71-73"));
    const Tensor heads = random_tensor(s.n, s.groups * s.group_dim, 71);
    const HostWeight o_a = random_weight(s.dtype, s.groups * s.rank, s.group_dim, 72);
    const HostWeight o_b = random_weight(s.dtype, s.hidden_dim, s.groups * s.rank, 73);
    Tensor64 expected(s.n, s.hidden_dim);
    for (int64_t t = 0; t < s.n; ++t) {
      naive::Vector low;
      for (int64_t g = 0; g < s.groups; ++g) {
        const float* from = heads.row(t) + g * s.group_dim;
        const naive::Vector part(from, from + s.group_dim);
        const naive::Vector all = naive::linear(part, o_a.values);
        low.insert(low.end(), all.begin() + g * s.rank, all.begin() + (g + 1) * s.rank);
      }
      const naive::Vector row = naive::linear(low, o_b.values);
      std::copy(row.begin(), row.end(), expected.row(t));
    }
    EXPECT_TRUE(near_rows(
        run(heads, o_a, o_b, s.groups), expected,
        chain_bound(GetParam(), 2, std::max(s.group_dim, s.groups * s.rank))));
  }
}

TEST_P(OutputProjectTest, RefusesWhatTheContractExcludes) {
  OutputProjectArgs good;
  good.heads = bench_.input(random_tensor(2, 64, 1));
  good.o_a = bench_.weight(random_weight(DType::kF32, 8, 32, 2));
  good.o_b = bench_.weight(random_weight(DType::kF32, 5, 8, 3));
  good.out = bench_.output(2, 5);
  good.num_groups = 2;
  EXPECT_OK(output_project(bench_.exec(), good));
  const auto refuses = [&](const auto& change, const char* text) {
    OutputProjectArgs args = good;
    change(args);
    EXPECT_ERROR(output_project(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  refuses([](OutputProjectArgs& a) { a.num_groups = 0; }, "num_groups");
  refuses([](OutputProjectArgs& a) { a.num_groups = 3; }, "num_groups");
  refuses([](OutputProjectArgs& a) { a.num_groups = 4; }, "heads");
  refuses([](OutputProjectArgs& a) { a.o_a.rows = 7; }, "o_a");
  refuses([](OutputProjectArgs& a) { a.heads.cols = 63; }, "heads");
  refuses([](OutputProjectArgs& a) { a.out.cols = 6; }, "out");
  refuses([](OutputProjectArgs& a) { a.out.rows = 1; }, "out");
  refuses([](OutputProjectArgs& a) { a.heads.rows = kChunkTokensMax + 1; }, "rows");
}

INSTANTIATE_TEST_SUITE_P(
    Backends, OutputProjectTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
