#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/products.h"
#include "kernels/hc_pre/hc_pre_impl.h"

namespace tandem::detail {
namespace {

void mix_row(const CpuKernels& kernels, const HcPreArgs& args, int64_t t, const float* projected) {
  const int64_t s = args.num_streams;
  const int64_t hidden_dim = args.norm.size;
  const float* x = args.streams.row(t);
  const float mean = kernels.f32.dot(x, x, s * hidden_dim) / static_cast<float>(s * hidden_dim);
  const float r = 1.0f / std::sqrt(mean + args.rms_eps);
  const auto gate = [&](int64_t i, int64_t group) {
    return projected[i] * r * args.scale.data[group] + args.base.data[i];
  };

  std::array<float, 2 * kHcStreamsMax> gates;
  for (int64_t j = 0; j < s; ++j) gates[j] = gate(j, 0);
  for (int64_t k = 0; k < s; ++k) gates[s + k] = gate(s + k, 1);
  kernels.f32.sigmoid(gates.data(), 2 * s, gates.data());
  for (int64_t j = 0; j < s; ++j) gates[j] += args.hc_eps;
  float* mix = args.mix.row(t);
  for (int64_t k = 0; k < s; ++k) mix[k] = 2.0f * gates[s + k];
  for (int64_t i = 0; i < s * s; ++i) mix[s + i] = gate(2 * s + i, 2);
  kernels.f32.sinkhorn(mix + s, s, args.sinkhorn_iterations, args.hc_eps);

  float* normed = args.normed.row(t);
  kernels.f32.mix_streams(x, gates.data(), s, hidden_dim, normed);
  kernels.f32.rms_norm(normed, args.norm.data, hidden_dim, args.rms_eps, normed);
}

}  // namespace

Status hc_pre_fast(const Exec& exec, const HcPreArgs& args) {
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const int64_t n = args.streams.rows;
  const Scratch::Frame frame(*exec.scratch);
  const Rows projected{exec.scratch->take<float>(n * args.fn.rows), n, args.fn.rows, args.fn.rows};
  const cpu::Activations x =
      cpu::prepare(exec, kernels, args.streams, cpu::ActivationForms{}.add(args.fn));
  const cpu::Product product{args.fn, &x, nullptr, n, projected.data, projected.stride};
  cpu::run_products(exec, kernels, {&product, 1});
  constexpr int64_t kRowGrain = 4;
  exec.pool->for_range(n, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) mix_row(kernels, args, t, projected.row(t));
  });
  return {};
}

}  // namespace tandem::detail
