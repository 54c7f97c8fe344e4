#include <algorithm>
#include <array>

#include "kernels/cuda/regime.h"
#include "kernels/linear/gemv.h"
#include "kernels/linear/linear.h"
#include "kernels/output_project/output_project_impl.h"
#include "kernels/output_project/output_project_prefill.h"

namespace tandem::detail {

Status output_project_cuda(const Exec& exec, const OutputProjectArgs& args) {
  const int64_t n = args.heads.rows;
  if (cuda::is_prefill(exec) && output_project_prefill_takes(args)) {
    return output_project_prefill_cuda(exec, args);
  }
  const int64_t group_dim = args.o_a.cols;
  const int64_t rank = args.o_a.rows / args.num_groups;
  const int64_t width = args.o_a.rows;
  const Scratch::Frame frame(*exec.scratch);
  const Rows low = {exec.scratch->take<float>(n * width), n, width, width};
  constexpr auto kPartsMax = static_cast<int64_t>(cuda::kGemvPartsMax);
  for (int64_t begin = 0; begin < args.num_groups; begin += kPartsMax) {
    std::array<cuda::GemvPart, cuda::kGemvPartsMax> parts;
    const int64_t count = std::min(kPartsMax, args.num_groups - begin);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t g = begin + i;
      parts[static_cast<size_t>(i)] = {
          {args.heads.data + g * group_dim, n, group_dim, args.heads.stride},
          args.o_a.slice(g * rank, rank),
          {low.data + g * rank, n, rank, width}};
    }
    TANDEM_TRY(cuda::gemv(exec, std::span(parts.data(), static_cast<size_t>(count))));
  }
  return linear(exec, {low, args.o_b, args.out});
}

}  // namespace tandem::detail
