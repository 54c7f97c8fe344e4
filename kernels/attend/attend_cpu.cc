#include <algorithm>
#include <cmath>

#include "kernels/attend/attend_impl.h"
#include "kernels/attend/visible_rows.h"
#include "kernels/core/slab_rows.h"
#include "kernels/math/reference_math.h"

namespace tandem::detail {
namespace {

/// Copies the rows that query t sees, in order, to `out` and returns their number.
int64_t gather_rows(const AttendArgs& args, int64_t t, float* out) {
  const VisibleRows seen = visible_rows(args, t);
  int64_t num_rows = 0;
  for (int64_t p = seen.window_begin; p <= seen.pos; ++p) {
    float* row = out + num_rows++ * args.head_dim;
    if (p >= seen.step_begin) {
      std::copy_n(args.kv_row.row(seen.step_row + (p - seen.step_begin)), args.head_dim, row);
      round_to_slab(args.window_rows.dtype, row, args.head_dim);
    } else {
      load_slab_row(args.window_rows, seen.bank, p % args.window_rows.capacity_rows, row);
    }
  }
  for (int64_t j = 0; j < seen.num_compressed; ++j) {
    const int64_t idx = seen.selection != nullptr ? seen.selection[j] : j;
    load_slab_row(args.compressed_rows, seen.bank, idx, out + num_rows++ * args.head_dim);
  }
  return num_rows;
}

void attend_head(
    const AttendArgs& args, const float* q, float sink, const float* rows, int64_t num_rows,
    float* probabilities, float* out) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(args.head_dim));
  float largest = sink;
  for (int64_t j = 0; j < num_rows; ++j) {
    probabilities[j] = reference::dot(q, rows + j * args.head_dim, args.head_dim) * scale;
    largest = std::max(largest, probabilities[j]);
  }
  float sum = std::exp(sink - largest);
  for (int64_t j = 0; j < num_rows; ++j) {
    probabilities[j] = std::exp(probabilities[j] - largest);
    sum += probabilities[j];
  }
  std::fill_n(out, args.head_dim, 0.0f);
  for (int64_t j = 0; j < num_rows; ++j) {
    const float p = probabilities[j] / sum;
    const float* row = rows + j * args.head_dim;
    for (int64_t i = 0; i < args.head_dim; ++i) out[i] += p * row[i];
  }
}

}  // namespace

Status attend_cpu(const Exec& exec, const AttendArgs& args) {
  const int64_t n = args.step.num_rows;
  const int num_threads = exec.pool->num_threads();
  int64_t rows_max = 0;
  for (int64_t t = 0; t < n; ++t) {
    rows_max = std::max(rows_max, args.window + visible_rows(args, t).num_compressed);
  }
  const Scratch::Frame frame(*exec.scratch);
  float* rows = exec.scratch->take<float>(num_threads * rows_max * args.head_dim);
  float* probabilities = exec.scratch->take<float>(num_threads * rows_max);
  exec.pool->run([&](int thread_idx) {
    float* my_rows = rows + thread_idx * rows_max * args.head_dim;
    for (int64_t t = thread_idx; t < n; t += num_threads) {
      const int64_t num_rows = gather_rows(args, t, my_rows);
      for (int64_t h = 0; h < args.num_heads; ++h) {
        float* out = args.out.row(t) + h * args.head_dim;
        attend_head(
            args, args.q.row(t) + h * args.head_dim, args.sinks.data[h], my_rows, num_rows,
            probabilities + thread_idx * rows_max, out);
        reference::rotate_tail(out, args.head_dim, args.rotary, args.step.pos[t], /*inverse=*/true);
      }
    }
  });
  return {};
}

}  // namespace tandem::detail
