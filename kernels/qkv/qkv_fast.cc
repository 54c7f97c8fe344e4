#include <array>

#include "kernels/cpu/products.h"
#include "kernels/cpu/rotate.h"
#include "kernels/math/reference_math.h"
#include "kernels/qkv/qkv_impl.h"

namespace tandem::detail {
namespace {

void finish_kv_row(
    const CpuKernels& kernels, const QkvArgs& args, const cpu::RotaryAngles& angles, float* row) {
  kernels.f32.rms_norm(row, args.kv_norm.data, args.head_dim, args.rms_eps, row);
  angles.rotate_tail(row, args.head_dim, /*inverse=*/false);
  if (args.rounding == RowRounding::kFp8) {
    reference::round_fp8_groups(row, args.head_dim - args.rotary.dim);
  }
}

}  // namespace

Status qkv_fast(const Exec& exec, const QkvArgs& args) {
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const int64_t n = args.step.num_rows;
  const Scratch::Frame frame(*exec.scratch);

  const cpu::Activations x =
      cpu::prepare(exec, kernels, args.x, cpu::ActivationForms{}.add(args.q_a).add(args.kv));
  const std::array<cpu::Product, 2> from_x = {{
      {args.q_a, &x, nullptr, n, args.q_latent.data, args.q_latent.stride},
      {args.kv, &x, nullptr, n, args.kv_row.data, args.kv_row.stride},
  }};
  cpu::run_products(exec, kernels, from_x);

  constexpr int64_t kRowGrain = 8;
  exec.pool->for_range(n, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* latent = args.q_latent.row(t);
      kernels.f32.rms_norm(latent, args.q_a_norm.data, args.q_latent.cols, args.rms_eps, latent);
      const cpu::RotaryAngles angles(kernels, args.rotary, args.step.pos[t]);
      finish_kv_row(kernels, args, angles, args.kv_row.row(t));
    }
  });

  const cpu::Activations latent =
      cpu::prepare(exec, kernels, args.q_latent, cpu::ActivationForms{}.add(args.q_b));
  const cpu::Product from_latent{args.q_b, &latent, nullptr, n, args.q.data, args.q.stride};
  cpu::run_products(exec, kernels, {&from_latent, 1});

  constexpr int64_t kHeadGrain = 32;
  exec.pool->for_range(n * args.num_heads, kHeadGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t t = i / args.num_heads;
      const cpu::RotaryAngles angles(kernels, args.rotary, args.step.pos[t]);
      for (; i < end && i / args.num_heads == t; ++i) {
        float* head = args.q.row(t) + i % args.num_heads * args.head_dim;
        kernels.f32.rms_norm(head, nullptr, args.head_dim, args.rms_eps, head);
        angles.rotate_tail(head, args.head_dim, /*inverse=*/false);
      }
    }
  });
  return {};
}

}  // namespace tandem::detail
