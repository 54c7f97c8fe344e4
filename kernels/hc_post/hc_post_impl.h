#pragma once

#include "kernels/hc_post/hc_post.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status hc_post_cpu(const Exec& exec, const HcPostArgs& args);  // float32, the reference
Status hc_post_fast(const Exec& exec, const HcPostArgs& args);
Status hc_post_cuda(const Exec& exec, const HcPostArgs& args);

}  // namespace tandem::detail
