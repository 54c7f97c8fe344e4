#include "tests/support/naive_ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tandem::test::naive {

HcMix hc_mix(
    std::span<const double> x, const Tensor64& fn, std::span<const float> scale,
    std::span<const float> base, int64_t num_streams, int iterations, double hc_eps,
    double rms_eps) {
  const auto s = static_cast<size_t>(num_streams);
  const double r = inverse_rms(x, rms_eps);
  Vector mix = linear(x, fn);
  for (double& m : mix) m *= r;

  HcMix out;
  for (size_t j = 0; j < s; ++j) {
    out.pre.push_back(sigmoid(mix[j] * scale[0] + base[j]) + hc_eps);
    out.post.push_back(2 * sigmoid(mix[s + j] * scale[1] + base[s + j]));
  }
  Vector& c = out.comb;
  c.resize(s * s);
  for (size_t i = 0; i < s * s; ++i) c[i] = mix[2 * s + i] * scale[2] + base[2 * s + i];
  for (size_t j = 0; j < s; ++j) {
    const double top = *std::max_element(c.begin() + j * s, c.begin() + (j + 1) * s);
    double sum = 0;
    for (size_t k = 0; k < s; ++k) sum += c[j * s + k] = std::exp(c[j * s + k] - top);
    for (size_t k = 0; k < s; ++k) c[j * s + k] = c[j * s + k] / sum + hc_eps;
  }
  for (int pass = 0; pass < iterations; ++pass) {
    for (size_t j = 0; j < s && pass > 0; ++j) {
      double sum = hc_eps;
      for (size_t k = 0; k < s; ++k) sum += c[j * s + k];
      for (size_t k = 0; k < s; ++k) c[j * s + k] /= sum;
    }
    for (size_t k = 0; k < s; ++k) {
      double sum = hc_eps;
      for (size_t j = 0; j < s; ++j) sum += c[j * s + k];
      for (size_t j = 0; j < s; ++j) c[j * s + k] /= sum;
    }
  }
  return out;
}

Vector hc_collapse(std::span<const double> x, const Vector& pre) {
  const size_t width = x.size() / pre.size();
  Vector out(width);
  for (size_t j = 0; j < pre.size(); ++j) {
    for (size_t d = 0; d < width; ++d) out[d] += pre[j] * x[j * width + d];
  }
  return out;
}

Vector hc_post(std::span<const double> x, std::span<const double> f, const HcMix& mix) {
  const size_t s = mix.post.size();
  const size_t width = f.size();
  Vector out(x.size());
  for (size_t k = 0; k < s; ++k) {
    for (size_t d = 0; d < width; ++d) {
      double sum = mix.post[k] * f[d];
      for (size_t j = 0; j < s; ++j) sum += mix.comb[j * s + k] * x[j * width + d];
      out[k * width + d] = sum;
    }
  }
  return out;
}

Vector head_row(
    std::span<const double> x, const Tensor64& fn, double scale, std::span<const float> base,
    std::span<const float> norm, double hc_eps, double rms_eps) {
  const double r = inverse_rms(x, rms_eps);
  Vector pre = linear(x, fn);
  for (size_t j = 0; j < pre.size(); ++j) pre[j] = sigmoid(pre[j] * r * scale + base[j]) + hc_eps;
  return rms_norm(hc_collapse(x, pre), norm, rms_eps);
}

Vector attend(std::span<const double> q, const std::vector<Vector>& rows, double sink) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size()));
  Vector scores;
  double top = sink;
  for (const Vector& row : rows) {
    scores.push_back(std::inner_product(q.begin(), q.end(), row.begin(), 0.0) * scale);
    top = std::max(top, scores.back());
  }
  double sum = std::exp(sink - top);
  for (double& score : scores) sum += score = std::exp(score - top);
  Vector out(q.size());
  for (size_t j = 0; j < rows.size(); ++j) {
    for (size_t i = 0; i < out.size(); ++i) out[i] += scores[j] / sum * rows[j][i];
  }
  return out;
}

Vector pool(const std::vector<Vector>& u, const std::vector<Vector>& g) {
  Vector out(u.front().size());
  for (size_t i = 0; i < out.size(); ++i) {
    double top = g[0][i];
    for (const Vector& gate : g) top = std::max(top, gate[i]);
    double sum = 0;
    for (size_t r = 0; r < u.size(); ++r) {
      const double weight = std::exp(g[r][i] - top);
      sum += weight;
      out[i] += weight * u[r][i];
    }
    out[i] /= sum;
  }
  return out;
}

double index_score(
    std::span<const double> q, std::span<const double> row, std::span<const double> w) {
  double score = 0;
  for (size_t h = 0; h < w.size(); ++h) {
    const std::span<const double> head = q.subspan(h * row.size(), row.size());
    const double match = std::inner_product(head.begin(), head.end(), row.begin(), 0.0);
    score += std::max(0.0, match) * w[h];
  }
  return score / std::sqrt(static_cast<double>(row.size() * w.size()));
}

std::vector<int32_t> top_indices(std::span<const double> scores, int64_t count) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  order.resize(std::min(order.size(), static_cast<size_t>(count)));
  std::sort(order.begin(), order.end());
  return order;
}

Vector route_scores(std::span<const double> x, const Tensor64& gate) {
  Vector out = linear(x, gate);
  for (double& s : out) s = std::sqrt(softplus(s));
  return out;
}

Vector route_weights(std::span<const double> scores, std::span<const int32_t> ids, double scale) {
  double sum = 0;
  for (const int32_t id : ids) sum += scores[static_cast<size_t>(id)];
  sum = std::max(sum, 6.103515625e-5);
  Vector out;
  for (const int32_t id : ids) out.push_back(scores[static_cast<size_t>(id)] / sum * scale);
  return out;
}

Vector expert(
    std::span<const double> x, const Tensor64& w1, const Tensor64& w3, const Tensor64& w2,
    double limit, double weight) {
  Vector mid = linear(x, w1);
  const Vector up = linear(x, w3);
  for (size_t i = 0; i < mid.size(); ++i) {
    const double g = std::min(mid[i], limit);
    mid[i] = g * sigmoid(g) * std::clamp(up[i], -limit, limit) * weight;
  }
  return linear(mid, w2);
}

}  // namespace tandem::test::naive
