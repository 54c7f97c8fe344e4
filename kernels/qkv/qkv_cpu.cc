#include <cmath>

#include "kernels/linear/reference_linear.h"
#include "kernels/math/reference_math.h"
#include "kernels/qkv/qkv_impl.h"

namespace tandem::detail {
namespace {

void finish_query_head(const QkvArgs& args, float* head, int64_t pos) {
  const float scale = 1.0f / std::sqrt(reference::mean_square(head, args.head_dim) + args.rms_eps);
  for (int64_t i = 0; i < args.head_dim; ++i) head[i] *= scale;
  reference::rotate_tail(head, args.head_dim, args.rotary, pos, /*inverse=*/false);
}

void finish_kv_row(const QkvArgs& args, float* row, int64_t pos) {
  reference::rms_norm(row, args.kv_norm, args.rms_eps, row);
  reference::rotate_tail(row, args.head_dim, args.rotary, pos, /*inverse=*/false);
  if (args.rounding == RowRounding::kFp8) {
    reference::round_fp8_groups(row, args.head_dim - args.rotary.dim);
  }
}

}  // namespace

Status qkv_cpu(const Exec& exec, const QkvArgs& args) {
  const int64_t n = args.step.num_rows;
  reference::linear(exec, args.x, args.q_a, args.q_latent);
  for (int64_t t = 0; t < n; ++t) {
    float* latent = args.q_latent.row(t);
    reference::rms_norm(latent, args.q_a_norm, args.rms_eps, latent);
  }
  reference::linear(exec, args.q_latent, args.q_b, args.q);
  reference::linear(exec, args.x, args.kv, args.kv_row);
  exec.pool->for_range(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t pos = args.step.pos[t];
      for (int64_t h = 0; h < args.num_heads; ++h) {
        finish_query_head(args, args.q.row(t) + h * args.head_dim, pos);
      }
      finish_kv_row(args, args.kv_row.row(t), pos);
    }
  });
  return {};
}

}  // namespace tandem::detail
