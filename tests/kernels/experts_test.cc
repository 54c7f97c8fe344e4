#include "kernels/experts/experts.h"

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
  Tensor x;
  IntTensor ids;
  Tensor weights;
  std::vector<HostWeight> gate, up, down;
  HostWeight shared_gate, shared_up, shared_down;
  float limit = 10;
  float shared_limit = 10;
};

struct Shape {
  DType gate_up = DType::kF32;
  DType down = DType::kF32;
  DType shared = DType::kF32;
  int64_t n = 1, num_experts = 4, top_k = 2, hidden_dim = 32, expert_dim = 32, shared_dim = 32;
};

std::vector<HostWeight> random_experts(
    DType dtype, int64_t count, int64_t rows, int64_t cols, uint64_t seed) {
  std::vector<HostWeight> out;
  for (int64_t e = 0; e < count; ++e) {
    out.push_back(random_weight(
        dtype, rows, cols, seed + static_cast<uint64_t>(e),
        1.0f / std::sqrt(static_cast<float>(cols))));
  }
  return out;
}

Case random_case(const Shape& s) {
  Case out;
  out.x = random_tensor(s.n, s.hidden_dim, 101);
  out.ids = IntTensor(s.n, s.top_k);
  out.weights = random_tensor(s.n, s.top_k, 102, 0.3f);
  Rng rng(103);
  for (int64_t t = 0; t < s.n; ++t) {
    std::vector<int32_t> order(static_cast<size_t>(s.num_experts));
    for (size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int32_t>(e);
    for (size_t e = order.size() - 1; e > 0; --e) std::swap(order[e], order[rng.next() % (e + 1)]);
    std::copy_n(order.begin(), s.top_k, out.ids.row(t));
  }
  out.gate = random_experts(s.gate_up, s.num_experts, s.expert_dim, s.hidden_dim, 1000);
  out.up = random_experts(s.gate_up, s.num_experts, s.expert_dim, s.hidden_dim, 2000);
  out.down = random_experts(s.down, s.num_experts, s.hidden_dim, s.expert_dim, 3000);
  out.shared_gate = random_experts(s.shared, 1, s.shared_dim, s.hidden_dim, 4000)[0];
  out.shared_up = random_experts(s.shared, 1, s.shared_dim, s.hidden_dim, 5000)[0];
  out.shared_down = random_experts(s.shared, 1, s.hidden_dim, s.shared_dim, 6000)[0];
  return out;
}

Tensor64 expected_of(const Case& c) {
  Tensor64 out(c.x.rows, c.x.cols);
  for (int64_t t = 0; t < c.x.rows; ++t) {
    const naive::Vector x(c.x.row(t), c.x.row(t) + c.x.cols);
    naive::Vector sum = naive::expert(
        x, c.shared_gate.values, c.shared_up.values, c.shared_down.values, c.shared_limit, 1);
    for (int64_t k = 0; k < c.ids.cols; ++k) {
      const auto e = static_cast<size_t>(c.ids.at(t, k));
      const naive::Vector part = naive::expert(
          x, c.gate[e].values, c.up[e].values, c.down[e].values, c.limit, c.weights.at(t, k));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    std::copy(sum.begin(), sum.end(), out.row(t));
  }
  return out;
}

Case only_row(const Case& c, int64_t t) {
  Case one = c;
  one.x = Tensor(1, c.x.cols);
  one.ids = IntTensor(1, c.ids.cols);
  one.weights = Tensor(1, c.ids.cols);
  std::copy_n(c.x.row(t), c.x.cols, one.x.row(0));
  std::copy_n(c.ids.row(t), c.ids.cols, one.ids.row(0));
  std::copy_n(c.weights.row(t), c.ids.cols, one.weights.row(0));
  return one;
}

class ExpertsTest : public OpTest {
 protected:
  ExpertsArgs args_of(const Case& c) {
    ExpertsArgs args;
    args.x = bench_.input(c.x);
    args.expert_ids = bench_.input(c.ids);
    args.expert_weights = bench_.input(c.weights);
    args.gate = bench_.experts(c.gate);
    args.up = bench_.experts(c.up);
    args.down = bench_.experts(c.down);
    args.shared_gate = bench_.weight(c.shared_gate);
    args.shared_up = bench_.weight(c.shared_up);
    args.shared_down = bench_.weight(c.shared_down);
    args.out = bench_.output(c.x.rows, c.x.cols);
    args.swiglu_limit = c.limit;
    args.shared_swiglu_limit = c.shared_limit;
    return args;
  }

  Tensor run(const Case& c) {
    const ExpertsArgs args = args_of(c);
    EXPECT_OK(experts(bench_.exec(), args));
    return bench_.fetch(args.out);
  }

  void expect_matches_float64(const Case& c) {
    const int64_t terms = std::max(c.x.cols, c.down[0].cols);
    EXPECT_TRUE(near_rows(run(c), expected_of(c), chain_bound(GetParam(), 3, terms)));
  }
};

TEST_P(ExpertsTest, RunsHandWorkedExperts) {
  // One value throughout, x = 2: expert e has gate 1, up e + 1, down 1; the shared one gate -1,
  // up 1, down 4. silu(2) = 1.7615942, silu(-2) = -0.2384058.
  const auto scalar = [](float v) { return make_weight(DType::kF32, Tensor(1, 1, {v})); };
  Case c;
  c.x = Tensor(1, 1, {2});
  c.ids = IntTensor(1, 2, {2, 0});
  c.weights = Tensor(1, 2, {0.5f, 2});
  for (const float e : {0.0f, 1.0f, 2.0f}) {
    c.gate.push_back(scalar(1));
    c.up.push_back(scalar(e + 1));
    c.down.push_back(scalar(1));
  }
  c.shared_gate = scalar(-1);
  c.shared_up = scalar(1);
  c.shared_down = scalar(4);
  const double silu = 2 / (1 + std::exp(-2.0));
  const double shared = 4 * 2 * (-2 / (1 + std::exp(2.0)));
  const double expected = 0.5 * silu * 6 + 2 * silu * 2 + shared;
  const double tolerance = GetParam().exact() ? 4e-6 : 0.1;  // bf16: 2^-8 of the terms' sum 14
  EXPECT_TRUE(near_all(run(c), Tensor64(1, 1, {expected}), tolerance));
}

TEST_P(ExpertsTest, MatchesFloat64OverTypes) {
  const DType f16 = DType::kF16;
  const DType q8 = DType::kQ8_0;
  const std::pair<DType, DType> pairs[] = {
      {DType::kF32, DType::kF32},     {f16, f16},
      {DType::kBF16, DType::kBF16},   {q8, q8},
      {DType::kQ4_K, DType::kQ4_K},   {DType::kIQ2_XXS, DType::kQ2_K},
      {DType::kMXFP4, DType::kMXFP4}, {DType::kQ6_K, DType::kQ6_K},
      {DType::kQ2_K, DType::kQ4_K}};
  for (const auto& [gate_up, down] : pairs) {
    SCOPED_TRACE(str_cat(dtype_name(gate_up), " ", dtype_name(down), " seed 101"));
    const Case c = random_case({gate_up, down, q8, 5, 4, 2, 256, 256, 256});
    expect_matches_float64(c);
    expect_matches_float64(only_row(c, 3));
  }
}

TEST_P(ExpertsTest, MatchesFloat64OverShapes) {
  const DType f32 = DType::kF32;
  const DType q8 = DType::kQ8_0;
  expect_matches_float64(random_case({f32, f32, f32, 2, 1, 1, 31, 33, 17}));
  expect_matches_float64(random_case({f32, f32, f32, 3, 6, 6, 64, 31, 64}));  // all of them
  expect_matches_float64(random_case({q8, q8, q8, 33, 8, 3, 64, 96, 32}));
  expect_matches_float64(random_case({q8, q8, q8, 2, 64, 6, 32, 32, 32}));
  EXPECT_EQ(run(random_case({f32, f32, f32, 0, 4, 2, 32, 32, 32})).rows, 0);
}

TEST_P(ExpertsTest, ClampsTheGateFromAboveAndUpOnBothSides) {
  // Limits well inside the range of the projections: without the clamp, or with the gate clamped
  // from below too, the result is far away.
  for (const float limit : {0.1f, 0.7f}) {
    Case c = random_case({DType::kF32, DType::kF32, DType::kF32, 4, 4, 2, 64, 64, 64});
    c.limit = limit;
    c.shared_limit = 2 * limit;
    expect_matches_float64(c);
    Case low = c;
    for (float& v : low.x.values) v *= 30;  // deep in the clamp
    expect_matches_float64(low);
  }
}

TEST_P(ExpertsTest, AllRowsMayShareTheirExperts) {
  Case c = random_case({DType::kQ8_0, DType::kQ8_0, DType::kQ8_0, 9, 5, 2, 64, 64, 64});
  for (int64_t t = 0; t < 9; ++t) {
    c.ids.at(t, 0) = 4;
    c.ids.at(t, 1) = 0;
  }
  expect_matches_float64(c);
}

TEST_P(ExpertsTest, RowsDoNotDependOnTheirBatch) {
  // On a GPU up to 16 rows run as decode; longer steps round in another way.
  const int64_t n = GetParam().device == Device::kCuda ? 16 : 17;
  const Case c = random_case({DType::kQ4_K, DType::kQ4_K, DType::kQ8_0, n, 6, 3, 256, 256, 256});
  const Tensor all = run(c);
  for (const int64_t t : {int64_t{0}, int64_t{9}, n - 1}) {
    EXPECT_EQ(run(only_row(c, t)).values, std::vector<float>(all.row(t), all.row(t) + 256))
        << "row " << t;
  }
}

TEST_P(ExpertsTest, RefusesWhatTheContractExcludes) {
  const ExpertsArgs good =
      args_of(random_case({DType::kF32, DType::kF32, DType::kF32, 2, 4, 2, 32, 64, 96}));
  const auto refuses = [&](const auto& change, const char* text) {
    ExpertsArgs args = good;
    change(args);
    EXPECT_ERROR(experts(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  refuses([](ExpertsArgs& a) { a.up.experts = 3; }, "number");
  refuses([](ExpertsArgs& a) { a.down.experts = 3; }, "number");
  refuses([](ExpertsArgs& a) { a.gate.first.rows = 63; }, "gate");
  refuses([](ExpertsArgs& a) { a.gate.first.cols = 31; }, "gate");
  refuses([](ExpertsArgs& a) { a.up.first.cols = 31; }, "up");
  refuses([](ExpertsArgs& a) { a.up.first.dtype = DType::kF16; }, "type");
  refuses([](ExpertsArgs& a) { a.down.first.rows = 31; }, "down");
  refuses([](ExpertsArgs& a) { a.shared_gate.rows = 95; }, "shared_gate");
  refuses([](ExpertsArgs& a) { a.shared_up.cols = 31; }, "shared_up");
  refuses([](ExpertsArgs& a) { a.shared_down.rows = 31; }, "shared_down");
  refuses([](ExpertsArgs& a) { a.expert_ids.cols = 3; }, "expert_ids");
  refuses([](ExpertsArgs& a) { a.expert_ids.rows = 1; }, "expert_ids");
  refuses([](ExpertsArgs& a) { a.expert_weights.rows = 1; }, "expert_weights");
  refuses([](ExpertsArgs& a) { a.out.cols = 31; }, "out");
  refuses([](ExpertsArgs& a) { a.x.rows = kChunkTokensMax + 1; }, "rows");
}

INSTANTIATE_TEST_SUITE_P(Backends, ExpertsTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
