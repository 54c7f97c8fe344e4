#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/linear/reference_linear.h"
#include "kernels/math/reference_math.h"
#include "kernels/route/choose.h"
#include "kernels/route/route_impl.h"

namespace tandem::detail {
namespace {

constexpr float kWeightSumMin = 0x1p-14f;

void choose_by_score(const RouteArgs& args, const float* scores, int32_t* ids) {
  const int64_t num_experts = args.gate.rows;
  std::array<int32_t, kRouteExpertsMax> order;
  std::iota(order.begin(), order.begin() + num_experts, 0);
  const auto higher = [&](int32_t a, int32_t b) {
    const float score_a = scores[a] + args.bias.data[a];
    const float score_b = scores[b] + args.bias.data[b];
    return score_a != score_b ? score_a > score_b : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + args.top_k, order.begin() + num_experts, higher);
  std::copy_n(order.begin(), args.top_k, ids);
}

}  // namespace

void choose_experts(const RouteArgs& args, int64_t t, float* scores) {
  for (int64_t e = 0; e < args.gate.rows; ++e) {
    scores[e] = std::sqrt(reference::softplus(scores[e]));
  }
  int32_t* ids = args.expert_ids.row(t);
  if (args.token_experts.data != nullptr) {
    std::memcpy(ids, args.token_experts.row(args.step.token[t]), args.top_k * sizeof(int32_t));
  } else {
    choose_by_score(args, scores, ids);
  }
  float sum = 0;
  for (int64_t k = 0; k < args.top_k; ++k) sum += scores[ids[k]];
  sum = std::max(sum, kWeightSumMin);
  for (int64_t k = 0; k < args.top_k; ++k) {
    args.expert_weights.row(t)[k] = scores[ids[k]] / sum * args.scale;
  }
}

Status route_cpu(const Exec& exec, const RouteArgs& args) {
  const int64_t n = args.step.num_rows;
  const int64_t num_experts = args.gate.rows;
  const Scratch::Frame frame(*exec.scratch);
  const Rows scores{exec.scratch->take<float>(n * num_experts), n, num_experts, num_experts};
  reference::linear(exec, args.x, args.gate, scores);
  for (int64_t t = 0; t < n; ++t) choose_experts(args, t, scores.row(t));
  return {};
}

}  // namespace tandem::detail
