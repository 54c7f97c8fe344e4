#include "kernels/cpu/products.h"
#include "kernels/linear/linear_impl.h"

namespace tandem::detail {

Status linear_fast(const Exec& exec, const LinearArgs& args) {
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const Scratch::Frame frame(*exec.scratch);
  const cpu::Activations x =
      cpu::prepare(exec, kernels, args.x, cpu::ActivationForms{}.add(args.weight));
  const cpu::Product product{args.weight, &x, nullptr, args.x.rows, args.out.data, args.out.stride};
  cpu::run_products(exec, kernels, {&product, 1});
  return {};
}

}  // namespace tandem::detail
