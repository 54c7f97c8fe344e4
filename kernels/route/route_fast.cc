#include "kernels/cpu/products.h"
#include "kernels/route/choose.h"
#include "kernels/route/route_impl.h"

namespace tandem::detail {

Status route_fast(const Exec& exec, const RouteArgs& args) {
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const int64_t n = args.step.num_rows;
  const int64_t num_experts = args.gate.rows;
  const Scratch::Frame frame(*exec.scratch);
  const Rows scores{exec.scratch->take<float>(n * num_experts), n, num_experts, num_experts};
  const cpu::Activations x =
      cpu::prepare(exec, kernels, args.x, cpu::ActivationForms{}.add(args.gate));
  const cpu::Product product{args.gate, &x, nullptr, n, scores.data, scores.stride};
  cpu::run_products(exec, kernels, {&product, 1});
  constexpr int64_t kRowGrain = 8;
  exec.pool->for_range(n, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) choose_experts(args, t, scores.row(t));
  });
  return {};
}

}  // namespace tandem::detail
