#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "kernels/cpu/products.h"
#include "kernels/cpu/rotate.h"
#include "kernels/cpu/units.h"
#include "kernels/index_select/index_select_impl.h"
#include "kernels/index_select/top_k.h"
#include "kernels/math/reference_math.h"

namespace tandem::detail {
namespace {

int64_t visible_count(const IndexSelectArgs& args, int64_t t) {
  return (args.step.pos[t] + 1) / args.ratio;
}

/// Rotates and rounds the queries of row t and scales its head weights.
void finish_queries(
    const CpuKernels& kernels, const IndexSelectArgs& args, int64_t t, float* queries,
    float* weights) {
  const cpu::RotaryAngles angles(kernels, args.rotary, args.step.pos[t]);
  const float scale = 1.0f / std::sqrt(static_cast<float>(args.head_dim * args.num_heads));
  for (int64_t h = 0; h < args.num_heads; ++h) {
    float* query = queries + h * args.head_dim;
    angles.rotate_tail(query, args.head_dim, /*inverse=*/false);
    if (args.rounding == RowRounding::kHadamardFp4) {
      reference::hadamard(query, args.head_dim);
      reference::round_fp4_groups(query, args.head_dim);
    }
    weights[h] *= scale;
  }
}

void score_rows(
    const CpuKernels& kernels, const IndexSelectArgs& args, int64_t t, const float* queries,
    const float* weights, int64_t begin, int64_t end, float* scores) {
  const int64_t bank = args.step.segments[args.step.segment[t]].bank;
  kernels.f32.index_scores(
      queries, weights, args.num_heads, args.head_dim, args.rows.row(bank, begin),
      args.rows.row_bytes, args.rows.dtype, end - begin, scores + begin);
}

}  // namespace

Status index_select_fast(const Exec& exec, const IndexSelectArgs& args) {
  if (args.head_dim % 16 != 0) return index_select_cpu(exec, args);
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const int64_t n = args.step.num_rows;
  const int num_threads = exec.pool->num_threads();
  int64_t count_max = 0;
  for (int64_t t = 0; t < n; ++t) {
    const int64_t count = visible_count(args, t);
    count_max = std::max(count_max, count);
    int32_t* selection = args.selection.row(t);
    std::fill_n(selection, args.top_k, -1);
    if (count <= args.top_k) std::iota(selection, selection + count, 0);
  }
  if (count_max <= args.top_k) return {};

  const int64_t query_dim = args.num_heads * args.head_dim;
  const Scratch::Frame frame(*exec.scratch);
  const Rows queries{exec.scratch->take<float>(n * query_dim), n, query_dim, query_dim};
  const Rows weights{
      exec.scratch->take<float>(n * args.num_heads), n, args.num_heads, args.num_heads};
  float* scores = exec.scratch->take<float>(num_threads * count_max);
  uint32_t* keys = exec.scratch->take<uint32_t>(num_threads * 2 * count_max);
  const cpu::Activations latent =
      cpu::prepare(exec, kernels, args.q_latent, cpu::ActivationForms{}.add(args.q_b));
  const cpu::Activations x =
      cpu::prepare(exec, kernels, args.x, cpu::ActivationForms{}.add(args.weights));
  const std::array<cpu::Product, 2> products = {{
      {args.q_b, &latent, nullptr, n, queries.data, queries.stride},
      {args.weights, &x, nullptr, n, weights.data, weights.stride},
  }};
  cpu::run_products(exec, kernels, products);

  if (n == 1) {
    finish_queries(kernels, args, 0, queries.data, weights.data);
    constexpr int64_t kRowGrain = 128;
    exec.pool->for_range(count_max, kRowGrain, [&](int64_t begin, int64_t end) {
      score_rows(kernels, args, 0, queries.data, weights.data, begin, end, scores);
    });
    select_top_k(scores, count_max, args.top_k, keys, args.selection.data);
    return {};
  }
  cpu::run_items(*exec.pool, n, [&](int thread_idx, int64_t t) {
    const int64_t count = visible_count(args, t);
    if (count <= args.top_k) return;
    finish_queries(kernels, args, t, queries.row(t), weights.row(t));
    float* my_scores = scores + thread_idx * count_max;
    score_rows(kernels, args, t, queries.row(t), weights.row(t), 0, count, my_scores);
    select_top_k(
        my_scores, count, args.top_k, keys + thread_idx * 2 * count_max, args.selection.row(t));
  });
  return {};
}

}  // namespace tandem::detail
