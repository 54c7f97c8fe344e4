#pragma once

#include "kernels/hc_post/hc_post.h"
#include "kernels/hc_pre/hc_pre.h"

namespace tandem {

/// Whether hc_post_pre() takes the two: few rows of four streams on a GPU, and the streams that the
/// first operation replaces are those that the second one reads.
bool can_fuse_hc(const Exec& exec, const HcPostArgs& post, const HcPreArgs& pre);

/// hc_post(post), then hc_pre(pre), with the same bits: a launch less, and the products are made of
/// streams that were just computed.
///
/// Limits: can_fuse_hc().
/// Errors: those of the two.
Status hc_post_pre(const Exec& exec, const HcPostArgs& post, const HcPreArgs& pre);

}  // namespace tandem
