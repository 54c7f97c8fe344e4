#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/hc_pre/hc_pre.h"
#include "kernels/head/head_impl.h"
#include "kernels/linear/reference_linear.h"
#include "kernels/math/reference_math.h"

namespace tandem::detail {
namespace {

/// normed = rms_norm(sum_j pre[j] x_j, norm); projected [num_streams] = fn x.
void collapse_row(const HeadArgs& args, const float* x, const float* projected, float* normed) {
  const int64_t s = args.num_streams;
  const int64_t hidden_dim = args.norm.size;
  const float r = 1.0f / std::sqrt(reference::mean_square(x, s * hidden_dim) + args.rms_eps);
  std::array<float, kHcStreamsMax> pre{};
  for (int64_t j = 0; j < s; ++j) {
    const float gate = projected[j] * r * args.scale.data[0] + args.base.data[j];
    pre[j] = reference::sigmoid(gate) + args.hc_eps;
  }
  for (int64_t i = 0; i < hidden_dim; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < s; ++j) sum += pre[j] * x[j * hidden_dim + i];
    normed[i] = sum;
  }
  reference::rms_norm(normed, args.norm, args.rms_eps, normed);
}

}  // namespace

Status head_cpu(const Exec& exec, const HeadArgs& args) {
  const int64_t n = args.step.num_logits;
  const int64_t s = args.num_streams;
  const int64_t hidden_dim = args.norm.size;
  const Scratch::Frame frame(*exec.scratch);
  const Rows wanted{
      exec.scratch->take<float>(n * args.streams.cols), n, args.streams.cols, args.streams.cols};
  const Rows projected{exec.scratch->take<float>(n * s), n, s, s};
  const Rows normed{exec.scratch->take<float>(n * hidden_dim), n, hidden_dim, hidden_dim};
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(args.streams.row(args.step.logit_rows[i]), args.streams.cols, wanted.row(i));
  }
  reference::linear(exec, wanted, args.fn, projected);
  for (int64_t i = 0; i < n; ++i) {
    collapse_row(args, wanted.row(i), projected.row(i), normed.row(i));
  }
  reference::linear(exec, normed, args.output, args.logits);
  return {};
}

}  // namespace tandem::detail
