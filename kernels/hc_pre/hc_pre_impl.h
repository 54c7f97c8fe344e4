#pragma once

#include "kernels/hc_post/hc_post.h"
#include "kernels/hc_pre/hc_pre.h"

namespace tandem::detail {

/// kInvalidArgument if the arguments break hc_pre's contract.
Status check_hc_pre(const HcPreArgs& args);

// Arguments are checked and there is at least one row.

Status hc_pre_cpu(const Exec& exec, const HcPreArgs& args);  // float32, the reference
Status hc_pre_fast(const Exec& exec, const HcPreArgs& args);
Status hc_pre_cuda(const Exec& exec, const HcPreArgs& args);
Status hc_post_pre_cuda(const Exec& exec, const HcPostArgs& post, const HcPreArgs& pre);

}  // namespace tandem::detail
