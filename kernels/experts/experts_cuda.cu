#include <algorithm>

#include "kernels/cuda/regime.h"
#include "kernels/experts/expert_groups.cuh"
#include "kernels/experts/experts_decode.h"
#include "kernels/experts/experts_impl.h"
#include "kernels/experts/experts_prefill.h"

namespace tandem::detail {

Status experts_cuda(const Exec& exec, const ExpertsArgs& args) {
  if (cuda::is_prefill(exec) && experts_prefill_takes(args)) {
    return experts_prefill_cuda(exec, args);
  }
  if (exec.numerics == Numerics::kExact || !has_expert_dots(args)) {
    return experts_exact_cuda(exec, args);
  }
  for (int64_t begin = 0; begin < args.x.rows; begin += cuda::kExpertRowsMax) {
    const int64_t count = std::min<int64_t>(cuda::kExpertRowsMax, args.x.rows - begin);
    ExpertsArgs pass = args;
    pass.x = {args.x.row(begin), count, args.x.cols, args.x.stride};
    pass.expert_ids = {
        args.expert_ids.row(begin), count, args.expert_ids.cols, args.expert_ids.stride};
    pass.expert_weights = {
        args.expert_weights.row(begin), count, args.expert_weights.cols,
        args.expert_weights.stride};
    pass.out = {args.out.row(begin), count, args.out.cols, args.out.stride};
    TANDEM_TRY(experts_decode_cuda(exec, pass));
  }
  return {};
}

}  // namespace tandem::detail
