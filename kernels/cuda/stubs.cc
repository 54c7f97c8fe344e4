// The CUDA halves of the operations in a build without CUDA.

#include "kernels/attend/attend_impl.h"
#include "kernels/compress/compress_impl.h"
#include "kernels/embed/embed_impl.h"
#include "kernels/experts/experts_impl.h"
#include "kernels/hc_post/hc_post_impl.h"
#include "kernels/hc_pre/hc_pre_impl.h"
#include "kernels/head/head_impl.h"
#include "kernels/index_select/index_select_impl.h"
#include "kernels/index_select/select_top_k.h"
#include "kernels/linear/linear_impl.h"
#include "kernels/output_project/output_project_impl.h"
#include "kernels/qkv/qkv_impl.h"
#include "kernels/ring_append/ring_append_impl.h"
#include "kernels/route/route_impl.h"

namespace tandem::detail {
namespace {

Status no_cuda() {
  return {
      StatusCode::kUnimplemented, "this build has no CUDA; configure with the cuda-release preset"};
}

}  // namespace

Status attend_cuda(const Exec&, const AttendArgs&) {
  return no_cuda();
}
Status compress_cuda(const Exec&, const CompressArgs&) {
  return no_cuda();
}
Status embed_cuda(const Exec&, const EmbedArgs&) {
  return no_cuda();
}
Status experts_cuda(const Exec&, const ExpertsArgs&) {
  return no_cuda();
}
Status hc_post_cuda(const Exec&, const HcPostArgs&) {
  return no_cuda();
}
Status hc_pre_cuda(const Exec&, const HcPreArgs&) {
  return no_cuda();
}
Status hc_post_pre_cuda(const Exec&, const HcPostArgs&, const HcPreArgs&) {
  return no_cuda();
}
Status head_cuda(const Exec&, const HeadArgs&) {
  return no_cuda();
}
Status index_select_cuda(const Exec&, const IndexSelectArgs&) {
  return no_cuda();
}
Status select_top_k_cuda(const Exec&, const SelectTopKArgs&) {
  return no_cuda();
}
Status linear_cuda(const Exec&, const LinearArgs&) {
  return no_cuda();
}
Status output_project_cuda(const Exec&, const OutputProjectArgs&) {
  return no_cuda();
}
Status qkv_cuda(const Exec&, const QkvArgs&) {
  return no_cuda();
}
Status ring_append_cuda(const Exec&, const RingAppendArgs&) {
  return no_cuda();
}
Status route_cuda(const Exec&, const RouteArgs&) {
  return no_cuda();
}

}  // namespace tandem::detail
