#pragma once

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/views.h"

namespace tandem::detail {

struct SelectTopKArgs {
  ConstRows scores;              // [n, at least the largest count]; NaN is lowest
  const int32_t* pos = nullptr;  // [n]
  int64_t ratio = 4;
  IntRows selection;  // [n, top_k]
};

/// Row r considers its first count = (pos[r] + 1) / ratio scores: selection holds the indices of
/// the min(top_k, count) highest, ascending, then -1; of equal scores the lower index wins. Scores
/// of a row with count <= top_k are not read. Exact at any length. CUDA only.
Status select_top_k_cuda(const Exec& exec, const SelectTopKArgs& args);

}  // namespace tandem::detail
