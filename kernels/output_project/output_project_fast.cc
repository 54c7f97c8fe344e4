#include <algorithm>
#include <array>

#include "kernels/cpu/products.h"
#include "kernels/output_project/output_project_impl.h"

namespace tandem::detail {

Status output_project_fast(const Exec& exec, const OutputProjectArgs& args) {
  constexpr int64_t kGroupsAtOnce = 32;
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const int64_t n = args.heads.rows;
  const int64_t rank = args.o_a.rows / args.num_groups;
  const int64_t low_dim = args.o_b.cols;
  const Scratch::Frame frame(*exec.scratch);
  const Rows low{exec.scratch->take<float>(n * low_dim), n, low_dim, low_dim};

  const cpu::Activations heads =
      cpu::prepare(exec, kernels, args.heads, cpu::ActivationForms{}.add(args.o_a));
  for (int64_t begin = 0; begin < args.num_groups; begin += kGroupsAtOnce) {
    std::array<cpu::Activations, kGroupsAtOnce> inputs;
    std::array<cpu::Product, kGroupsAtOnce> products;
    const int64_t count = std::min(kGroupsAtOnce, args.num_groups - begin);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t group = begin + i;
      inputs[i] = heads.columns(group * args.o_a.cols, args.o_a.cols);
      products[i] = {args.o_a.slice(group * rank, rank),
                     &inputs[i],
                     nullptr,
                     n,
                     low.data + group * rank,
                     low.stride};
    }
    cpu::run_products(exec, kernels, {products.data(), static_cast<size_t>(count)});
  }

  const cpu::Activations x = cpu::prepare(exec, kernels, low, cpu::ActivationForms{}.add(args.o_b));
  const cpu::Product product{args.o_b, &x, nullptr, n, args.out.data, args.out.stride};
  cpu::run_products(exec, kernels, {&product, 1});
  return {};
}

}  // namespace tandem::detail
