#include "kernels/route/route.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

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
  Tensor x;
  HostWeight gate;
  std::vector<float> bias;  // empty on a hash layer
  IntTensor token_experts;  // empty on other layers
  int64_t top_k = 0;
  float scale = 1.5f;
};

struct Outputs {
  IntTensor ids;
  Tensor weights;
};

Case random_case(DType dtype, int32_t n, int64_t num_experts, int64_t hidden_dim, int64_t top_k) {
  Case out;
  out.step.parts = {{0, 0, n}};
  out.x = random_tensor(n, hidden_dim, 91);
  out.gate = random_weight(
      dtype, num_experts, hidden_dim, 92, 1.5f / std::sqrt(static_cast<float>(hidden_dim)));
  out.bias = random_vector(num_experts, 93, 0, 0.2f);
  out.top_k = top_k;
  return out;
}

HostWeight int_weight(const IntTensor& values) {
  HostWeight out;
  out.dtype = DType::kI32;
  out.rows = values.rows;
  out.cols = values.cols;
  out.bytes.resize(values.values.size() * sizeof(int32_t));
  std::memcpy(out.bytes.data(), values.values.data(), out.bytes.size());
  return out;
}

class RouteTest : public OpTest {
 protected:
  RouteArgs args_of(const Case& c) {
    RouteArgs args;
    args.step = bench_.step(c.step);
    args.x = bench_.input(c.x);
    args.gate = bench_.weight(c.gate);
    if (!c.bias.empty()) args.bias = bench_.vector(c.bias);
    if (!c.token_experts.values.empty()) {
      args.token_experts = bench_.weight(int_weight(c.token_experts));
    }
    args.expert_ids = bench_.int_output(c.x.rows, c.top_k);
    args.expert_weights = bench_.output(c.x.rows, c.top_k);
    args.top_k = c.top_k;
    args.scale = c.scale;
    return args;
  }

  Outputs run(const Case& c) {
    const RouteArgs args = args_of(c);
    EXPECT_OK(route(bench_.exec(), args));
    return {bench_.fetch(args.expert_ids), bench_.fetch(args.expert_weights)};
  }

  /// The chosen ids are the highest, in descending order, up to the float32 error of a score; the
  /// weights follow from the ids.
  void expect_matches_float64(const Case& c) {
    const Outputs actual = run(c);
    // Scores near 1 that are sums of hidden_dim products of size 1.5 / sqrt(hidden_dim) each.
    const double tolerance = 16 * std::sqrt(static_cast<double>(c.x.cols) + 16) * kF32Unit;
    Tensor64 weights(actual.weights.rows, c.top_k);
    for (int64_t t = 0; t < c.x.rows; ++t) {
      const naive::Vector x(c.x.row(t), c.x.row(t) + c.x.cols);
      const naive::Vector scores = naive::route_scores(x, c.gate.values);
      const std::span<const int32_t> ids(actual.ids.row(t), static_cast<size_t>(c.top_k));
      for (const int32_t id : ids) {
        ASSERT_GE(id, 0);
        ASSERT_LT(id, c.gate.rows);
      }
      if (c.bias.empty()) {
        const int32_t token = c.step.tokens[static_cast<size_t>(t)];
        for (int64_t k = 0; k < c.top_k; ++k) ASSERT_EQ(ids[k], c.token_experts.at(token, k));
      } else {
        expect_highest(scores, c.bias, ids, tolerance);
      }
      const naive::Vector row = naive::route_weights(scores, ids, c.scale);
      std::copy(row.begin(), row.end(), weights.row(t));
    }
    EXPECT_TRUE(near_all(actual.weights, weights, 4 * tolerance * c.scale));
  }

  static void expect_highest(
      const naive::Vector& scores, const std::vector<float>& bias, std::span<const int32_t> ids,
      double tolerance) {
    const auto value = [&](int32_t id) {
      return scores[static_cast<size_t>(id)] + static_cast<double>(bias[static_cast<size_t>(id)]);
    };
    const std::set<int32_t> chosen(ids.begin(), ids.end());
    ASSERT_EQ(chosen.size(), ids.size()) << "an expert was chosen twice";
    for (size_t k = 1; k < ids.size(); ++k) {
      EXPECT_GE(value(ids[k - 1]), value(ids[k]) - tolerance) << "place " << k;
    }
    for (int32_t e = 0; e < static_cast<int32_t>(scores.size()); ++e) {
      if (!chosen.contains(e)) {
        EXPECT_LE(value(e), value(ids.back()) + tolerance);
      }
    }
  }
};

TEST_P(RouteTest, ChoosesHandWorkedExperts) {
  // z = (0, 20, -20): s = sqrt(ln 2), sqrt(20), e^-10. The bias lifts the last above the first but
  // has no part in the weights.
  Case c = random_case(DType::kF32, 1, 3, 1, 2);
  c.x = Tensor(1, 1, {1});
  c.gate = make_weight(DType::kF32, Tensor(3, 1, {0, 20, -20}));
  c.bias = {0, 0, 2};
  const Outputs out = run(c);
  EXPECT_EQ(out.ids.values, (std::vector<int32_t>{1, 2}));
  const double s1 = std::sqrt(20.0);
  const double s2 = std::exp(-10.0);
  EXPECT_NEAR(out.weights.at(0, 0), 1.5 * s1 / (s1 + s2), 1e-6);
  EXPECT_NEAR(out.weights.at(0, 1), 1.5 * s2 / (s1 + s2), 1e-9);
}

TEST_P(RouteTest, MatchesFloat64OverShapes) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const int32_t n : {0, 1, 2, 33}) {
      for (const int64_t hidden_dim : {1, 31, 64, 257}) {
        SCOPED_TRACE(str_cat(dtype_name(dtype), " n=", n, " hidden_dim=", hidden_dim));
        expect_matches_float64(random_case(dtype, n, 16, hidden_dim, 6));
      }
    }
    expect_matches_float64(random_case(dtype, 2, 384, 1024, 6));
    expect_matches_float64(random_case(dtype, 2, kRouteExpertsMax, 64, kRouteTopKMax));
  }
}

TEST_P(RouteTest, TakesEveryTopK) {
  for (const int64_t top_k : {1, 2, 15, 16}) {
    SCOPED_TRACE(str_cat("top_k=", top_k));
    expect_matches_float64(random_case(DType::kF32, 3, 16, 64, top_k));  // up to all experts
    expect_matches_float64(random_case(DType::kF32, 3, 17, 64, top_k));
  }
}

TEST_P(RouteTest, TheLowerIdWinsATie) {
  Case c = random_case(DType::kF32, 2, 12, 32, 5);
  for (int64_t e = 0; e < 12; ++e) std::fill_n(c.gate.values.row(e), 32, e % 3 == 0 ? 0.1 : -0.1);
  c.gate = make_weight(DType::kF32, narrow(c.gate.values));
  c.bias.assign(12, 0.25f);
  c.x = Tensor(2, 32);
  c.x.values.assign(64, 1.0f);
  for (int64_t i = 0; i < 32; ++i) c.x.at(1, i) = -1.0f;
  const Outputs out = run(c);
  EXPECT_EQ(out.ids.values, (std::vector<int32_t>{0, 3, 6, 9, 1, 1, 2, 4, 5, 7}));
}

TEST_P(RouteTest, HashLayersTakeTheTokensExpertsInTheirOrder) {
  Case c = random_case(DType::kF16, 4, 16, 64, 3);
  c.step.tokens = {2, 0, 2, 4};
  c.bias.clear();
  c.token_experts = IntTensor(5, 3, {15, 0, 7, 1, 2, 3, 9, 4, 11, 0, 1, 2, 14, 13, 12});
  expect_matches_float64(c);
}

TEST_P(RouteTest, FloorsASumThatIsNearlyZero) {
  Case c = random_case(DType::kF32, 1, 4, 1, 2);
  c.x = Tensor(1, 1, {1});
  c.gate = make_weight(DType::kF32, Tensor(4, 1, {-30, -30, -30, -30}));
  c.bias.assign(4, 0.0f);
  const Outputs out = run(c);
  const double s = std::exp(-15.0);  // the sum 2 s = 6.1e-7 is below 2^-14
  EXPECT_EQ(out.ids.values, (std::vector<int32_t>{0, 1}));
  EXPECT_NEAR(out.weights.at(0, 0), 1.5 * s * 16384, 1e-7);
}

TEST_P(RouteTest, RefusesWhatTheContractExcludes) {
  const Case c = random_case(DType::kF32, 2, 16, 32, 6);
  const RouteArgs good = args_of(c);
  const auto refuses = [&](const auto& change, const char* text) {
    RouteArgs args = good;
    change(args);
    EXPECT_ERROR(route(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  const WeightView table = bench_.weight(int_weight(IntTensor(1, 6, {0, 1, 2, 3, 4, 5})));
  refuses([](RouteArgs& a) { a.gate.dtype = DType::kQ8_0; }, "Q8_0");
  refuses([](RouteArgs& a) { a.gate.rows = kRouteExpertsMax + 1; }, "experts");
  refuses([](RouteArgs& a) { a.gate.rows = 0; }, "experts");
  refuses([](RouteArgs& a) { a.top_k = 0; }, "top_k");
  refuses([](RouteArgs& a) { a.top_k = kRouteTopKMax + 1; }, "top_k");
  refuses([](RouteArgs& a) { a.gate.rows = 5; }, "top_k");
  refuses([](RouteArgs& a) { a.x.cols = 31; }, "x");
  refuses([](RouteArgs& a) { a.x.rows = 1; }, "x");
  refuses([](RouteArgs& a) { a.bias.size = 15; }, "bias");
  refuses([](RouteArgs& a) { a.bias = {}; }, "one of");
  refuses([&](RouteArgs& a) { a.token_experts = table; }, "one of");
  refuses(
      [&](RouteArgs& a) {
        a.bias = {};
        a.token_experts = table;
        a.token_experts.cols = 5;
      },
      "token_experts");
  refuses(
      [&](RouteArgs& a) {
        a.bias = {};
        a.token_experts = table;
        a.token_experts.dtype = DType::kF32;
      },
      "I32");
  refuses([](RouteArgs& a) { a.expert_ids.cols = 5; }, "expert_ids");
  refuses([](RouteArgs& a) { a.expert_weights.rows = 1; }, "expert_weights");
  refuses([](RouteArgs& a) { a.step.num_rows = kChunkTokensMax + 1; }, "rows");
}

INSTANTIATE_TEST_SUITE_P(Backends, RouteTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
