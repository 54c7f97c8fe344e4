#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/core/slab_rows.h"
#include "kernels/index_select/index_select_impl.h"
#include "kernels/linear/reference_linear.h"
#include "kernels/math/reference_math.h"

namespace tandem::detail {
namespace {

void finish_query(const IndexSelectArgs& args, float* query, int64_t pos) {
  reference::rotate_tail(query, args.head_dim, args.rotary, pos, /*inverse=*/false);
  if (args.rounding == RowRounding::kHadamardFp4) {
    reference::hadamard(query, args.head_dim);
    reference::round_fp4_groups(query, args.head_dim);
  }
}

struct SelectTemporaries {
  float* row;        // [head_dim]
  float* scores;     // [count]
  int32_t* indices;  // [count]
};

void select_for_row(
    const IndexSelectArgs& args, int64_t t, const float* queries, const float* weights,
    const SelectTemporaries& tmp) {
  const int64_t count = (args.step.pos[t] + 1) / args.ratio;
  const int64_t num_selected = std::min(count, args.top_k);
  int32_t* selection = args.selection.row(t);
  std::fill(selection + num_selected, selection + args.top_k, -1);
  if (count <= args.top_k) {
    std::iota(selection, selection + count, 0);
    return;
  }
  const int64_t bank = args.step.segments[args.step.segment[t]].bank;
  const float scale = 1.0f / std::sqrt(static_cast<float>(args.head_dim * args.num_heads));
  for (int64_t j = 0; j < count; ++j) {
    load_slab_row(args.rows, bank, j, tmp.row);
    float score = 0;
    for (int64_t h = 0; h < args.num_heads; ++h) {
      const float match = reference::dot(queries + h * args.head_dim, tmp.row, args.head_dim);
      score += std::max(0.0f, match) * (weights[h] * scale);
    }
    tmp.scores[j] = score;
  }
  std::iota(tmp.indices, tmp.indices + count, 0);
  const auto higher = [&](int32_t a, int32_t b) {
    return tmp.scores[a] != tmp.scores[b] ? tmp.scores[a] > tmp.scores[b] : a < b;
  };
  std::nth_element(tmp.indices, tmp.indices + num_selected, tmp.indices + count, higher);
  std::sort(tmp.indices, tmp.indices + num_selected);
  std::copy_n(tmp.indices, num_selected, selection);
}

}  // namespace

Status index_select_cpu(const Exec& exec, const IndexSelectArgs& args) {
  const int64_t n = args.step.num_rows;
  const int64_t query_dim = args.num_heads * args.head_dim;
  const int num_threads = exec.pool->num_threads();
  int64_t count_max = 0;
  for (int64_t t = 0; t < n; ++t) {
    count_max = std::max<int64_t>(count_max, (args.step.pos[t] + 1) / args.ratio);
  }

  const Scratch::Frame frame(*exec.scratch);
  const Rows queries{exec.scratch->take<float>(n * query_dim), n, query_dim, query_dim};
  const Rows weights{
      exec.scratch->take<float>(n * args.num_heads), n, args.num_heads, args.num_heads};
  float* rows = exec.scratch->take<float>(num_threads * args.head_dim);
  float* scores = exec.scratch->take<float>(num_threads * count_max);
  int32_t* indices = exec.scratch->take<int32_t>(num_threads * count_max);
  if (count_max > args.top_k) {
    reference::linear(exec, args.q_latent, args.q_b, queries);
    reference::linear(exec, args.x, args.weights, weights);
  }
  exec.pool->run([&](int thread_idx) {
    const SelectTemporaries tmp{
        rows + thread_idx * args.head_dim, scores + thread_idx * count_max,
        indices + thread_idx * count_max};
    for (int64_t t = thread_idx; t < n; t += num_threads) {
      if ((args.step.pos[t] + 1) / args.ratio > args.top_k) {
        for (int64_t h = 0; h < args.num_heads; ++h) {
          finish_query(args, queries.row(t) + h * args.head_dim, args.step.pos[t]);
        }
      }
      select_for_row(args, t, queries.row(t), weights.row(t), tmp);
    }
  });
  return {};
}

}  // namespace tandem::detail
