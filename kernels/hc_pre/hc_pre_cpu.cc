#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/hc_pre/hc_pre_impl.h"
#include "kernels/linear/reference_linear.h"
#include "kernels/math/reference_math.h"

namespace tandem::detail {
namespace {

using Comb = std::array<std::array<float, kHcStreamsMax>, kHcStreamsMax>;

void divide_rows(Comb& comb, int64_t s, float eps) {
  for (int64_t j = 0; j < s; ++j) {
    float sum = 0;
    for (int64_t k = 0; k < s; ++k) sum += comb[j][k];
    for (int64_t k = 0; k < s; ++k) comb[j][k] /= sum + eps;
  }
}

void divide_columns(Comb& comb, int64_t s, float eps) {
  for (int64_t k = 0; k < s; ++k) {
    float sum = 0;
    for (int64_t j = 0; j < s; ++j) sum += comb[j][k];
    for (int64_t j = 0; j < s; ++j) comb[j][k] /= sum + eps;
  }
}

void softmax_rows(Comb& comb, int64_t s, float eps) {
  for (int64_t j = 0; j < s; ++j) {
    const float largest = *std::max_element(comb[j].begin(), comb[j].begin() + s);
    float sum = 0;
    for (int64_t k = 0; k < s; ++k) {
      comb[j][k] = std::exp(comb[j][k] - largest);
      sum += comb[j][k];
    }
    for (int64_t k = 0; k < s; ++k) comb[j][k] = comb[j][k] / sum + eps;
  }
}

void sinkhorn(Comb& comb, int64_t s, int32_t iterations, float eps) {
  softmax_rows(comb, s, eps);
  divide_columns(comb, s, eps);
  for (int32_t i = 1; i < iterations; ++i) {
    divide_rows(comb, s, eps);
    divide_columns(comb, s, eps);
  }
}

void mix_row(const HcPreArgs& args, int64_t t, const float* projected) {
  const int64_t s = args.num_streams;
  const int64_t hidden_dim = args.norm.size;
  const float* x = args.streams.row(t);
  const float* base = args.base.data;
  const float r = 1.0f / std::sqrt(reference::mean_square(x, s * hidden_dim) + args.rms_eps);
  const auto gate = [&](int64_t i, int64_t group) {
    return projected[i] * r * args.scale.data[group] + base[i];
  };

  std::array<float, kHcStreamsMax> pre{};
  float* mix = args.mix.row(t);
  Comb comb{};
  for (int64_t j = 0; j < s; ++j) pre[j] = reference::sigmoid(gate(j, 0)) + args.hc_eps;
  for (int64_t k = 0; k < s; ++k) mix[k] = 2.0f * reference::sigmoid(gate(s + k, 1));
  for (int64_t j = 0; j < s; ++j) {
    for (int64_t k = 0; k < s; ++k) comb[j][k] = gate(2 * s + s * j + k, 2);
  }
  sinkhorn(comb, s, args.sinkhorn_iterations, args.hc_eps);
  for (int64_t j = 0; j < s; ++j) std::copy_n(comb[j].begin(), s, mix + s + s * j);

  float* normed = args.normed.row(t);
  for (int64_t i = 0; i < hidden_dim; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < s; ++j) sum += pre[j] * x[j * hidden_dim + i];
    normed[i] = sum;
  }
  reference::rms_norm(normed, args.norm, args.rms_eps, normed);
}

}  // namespace

Status hc_pre_cpu(const Exec& exec, const HcPreArgs& args) {
  const Scratch::Frame frame(*exec.scratch);
  const int64_t n = args.streams.rows;
  const Rows projected{exec.scratch->take<float>(n * args.fn.rows), n, args.fn.rows, args.fn.rows};
  reference::linear(exec, args.streams, args.fn, projected);
  exec.pool->for_range(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) mix_row(args, t, projected.row(t));
  });
  return {};
}

}  // namespace tandem::detail
