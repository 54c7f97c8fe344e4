#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/products.h"
#include "kernels/hc_pre/hc_pre.h"
#include "kernels/head/head_impl.h"

namespace tandem::detail {
namespace {

/// normed = rms_norm(sum_j pre[j] x_j, norm); projected [num_streams] = fn x.
void collapse_row(
    const CpuKernels& kernels, const HeadArgs& args, const float* x, const float* projected,
    float* normed) {
  const int64_t s = args.num_streams;
  const int64_t hidden_dim = args.norm.size;
  const float mean = kernels.f32.dot(x, x, s * hidden_dim) / static_cast<float>(s * hidden_dim);
  const float r = 1.0f / std::sqrt(mean + args.rms_eps);
  std::array<float, kHcStreamsMax> pre;
  for (int64_t j = 0; j < s; ++j) {
    pre[j] = projected[j] * r * args.scale.data[0] + args.base.data[j];
  }
  kernels.f32.sigmoid(pre.data(), s, pre.data());
  for (int64_t j = 0; j < s; ++j) pre[j] += args.hc_eps;
  kernels.f32.mix_streams(x, pre.data(), s, hidden_dim, normed);
  kernels.f32.rms_norm(normed, args.norm.data, hidden_dim, args.rms_eps, normed);
}

}  // namespace

Status head_fast(const Exec& exec, const HeadArgs& args) {
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const int64_t n = args.step.num_logits;
  const int64_t s = args.num_streams;
  const int64_t hidden_dim = args.norm.size;
  const Scratch::Frame frame(*exec.scratch);
  const Rows projected{exec.scratch->take<float>(n * s), n, s, s};
  const Rows normed{exec.scratch->take<float>(n * hidden_dim), n, hidden_dim, hidden_dim};

  const cpu::Activations streams =
      cpu::prepare(exec, kernels, args.streams, cpu::ActivationForms{}.add(args.fn));
  const cpu::Product collapse{args.fn, &streams,       args.step.logit_rows,
                              n,       projected.data, projected.stride};
  cpu::run_products(exec, kernels, {&collapse, 1});
  constexpr int64_t kRowGrain = 4;
  exec.pool->for_range(n, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      collapse_row(
          kernels, args, args.streams.row(args.step.logit_rows[i]), projected.row(i),
          normed.row(i));
    }
  });

  const cpu::Activations x =
      cpu::prepare(exec, kernels, normed, cpu::ActivationForms{}.add(args.output));
  const cpu::Product product{args.output, &x, nullptr, n, args.logits.data, args.logits.stride};
  cpu::run_products(exec, kernels, {&product, 1});
  return {};
}

}  // namespace tandem::detail
