#include "kernels/cpu/cpu_kernels.h"
#include "kernels/hc_post/hc_post_impl.h"

namespace tandem::detail {

Status hc_post_fast(const Exec& exec, const HcPostArgs& args) {
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const int64_t s = args.num_streams;
  constexpr int64_t kRowGrain = 8;
  exec.pool->for_range(args.streams.rows, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const float* mix = args.mix.row(t);
      kernels.f32.hc_post(
          args.streams.row(t), args.branch.row(t), mix, mix + s, s, args.branch.cols);
    }
  });
  return {};
}

}  // namespace tandem::detail
