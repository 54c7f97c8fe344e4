#include "kernels/hc_pre/hc_post_pre.h"

#include "kernels/core/require.h"
#include "kernels/cuda/regime.h"
#include "kernels/hc_pre/hc_pre_impl.h"

namespace tandem {
namespace {

constexpr int64_t kFusedStreams = 4;
constexpr int64_t kFusedDims = 64;  // of each stream in one CTA

}  // namespace

bool can_fuse_hc(const Exec& exec, const HcPostArgs& post, const HcPreArgs& pre) {
  return exec.device == Device::kCuda && !cuda::is_prefill(exec) && pre.streams.rows >= 1 &&
         pre.num_streams == kFusedStreams && post.num_streams == kFusedStreams &&
         pre.norm.size % kFusedDims == 0 && post.streams.data == pre.streams.data &&
         post.streams.rows == pre.streams.rows;
}

Status hc_post_pre(const Exec& exec, const HcPostArgs& post, const HcPreArgs& pre) {
  TANDEM_REQUIRE(can_fuse_hc(exec, post, pre), "hc_post_pre: the operations do not fit together");
  const int64_t n = post.streams.rows;
  const int64_t s = post.num_streams;
  TANDEM_TRY(require_rows("hc_post: branch", post.branch, n, pre.norm.size));
  TANDEM_TRY(require_rows("hc_post: mix", post.mix, n, s + s * s));
  TANDEM_TRY(require_rows("hc_post: streams", post.streams, n, s * pre.norm.size));
  TANDEM_TRY(detail::check_hc_pre(pre));
  return detail::hc_post_pre_cuda(exec, post, pre);
}

}  // namespace tandem
