#include "tests/support/naive_v4.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tests/support/naive_ops.h"

namespace tandem::test::naive {
namespace {

constexpr double kEps = 1e-6;
constexpr int kSinkhornIterations = 20;

std::string layer_name(int64_t il, const std::string& name) {
  return "blk." + std::to_string(il) + "." + name;
}

Vector row_of(const Tensor64& tensor, int64_t t) {
  return {tensor.row(t), tensor.row(t) + tensor.cols};
}

}  // namespace

V4::V4(V4Shape shape, const V4Weights& weights)
    : shape_(std::move(shape)),
      weights_(weights),
      plain_(plain_frequencies(10000, V4Shape::R)),
      yarn_(yarn_frequencies(160000, V4Shape::R, 16, 65536, 32, 1)) {}

const Tensor64& V4::matrix(int64_t il, const std::string& name) const {
  return weights_.at(il < 0 ? name : layer_name(il, name)).front().values;
}

std::vector<float> V4::vector(int64_t il, const std::string& name) const {
  const std::vector<double>& values = matrix(il, name).values;
  return {values.begin(), values.end()};
}

const std::vector<float>& V4::frequencies(int64_t il) const {
  return shape_.ratios[static_cast<size_t>(il)] == 0 ? plain_ : yarn_;
}

Tensor64 V4::embed(const std::vector<int32_t>& tokens) const {
  const Tensor64& table = matrix(-1, "token_embd.weight");
  Tensor64 out(static_cast<int64_t>(tokens.size()), V4Shape::S * shape_.E);
  for (int64_t t = 0; t < out.rows; ++t) {
    for (int64_t s = 0; s < V4Shape::S; ++s) {
      std::copy_n(table.row(tokens[static_cast<size_t>(t)]), shape_.E, out.row(t) + s * shape_.E);
    }
  }
  return out;
}

Tensor64 V4::layer(int64_t il, const Tensor64& streams, const std::vector<int32_t>& tokens) const {
  const int64_t n = streams.rows;
  std::vector<Vector> h;
  for (int64_t t = 0; t < n; ++t) h.push_back(row_of(streams, t));

  const auto enter = [&](const std::string& branch, std::vector<HcMix>& mixes) {
    const Tensor64& fn = matrix(il, "hc_" + branch + "_fn.weight");
    const std::vector<float> scale = vector(il, "hc_" + branch + "_scale.weight");
    const std::vector<float> base = vector(il, "hc_" + branch + "_base.weight");
    const std::vector<float> norm = vector(il, branch + "_norm.weight");
    std::vector<Vector> x;
    for (const Vector& row : h) {
      mixes.push_back(hc_mix(row, fn, scale, base, V4Shape::S, kSinkhornIterations, kEps, kEps));
      x.push_back(rms_norm(hc_collapse(row, mixes.back().pre), norm, kEps));
    }
    return x;
  };

  std::vector<HcMix> mixes;
  const std::vector<Vector> attended = attention(il, enter("attn", mixes));
  for (size_t t = 0; t < h.size(); ++t) h[t] = hc_post(h[t], attended[t], mixes[t]);

  mixes.clear();
  const std::vector<Vector> x = enter("ffn", mixes);
  Tensor64 out(n, streams.cols);
  for (size_t t = 0; t < h.size(); ++t) {
    const Vector row = hc_post(h[t], moe(il, x[t], tokens[t]), mixes[t]);
    std::copy(row.begin(), row.end(), out.row(static_cast<int64_t>(t)));
  }
  return out;
}

std::vector<Vector> V4::attention(int64_t il, const std::vector<Vector>& x) const {
  const int64_t ratio = shape_.ratios[static_cast<size_t>(il)];
  const std::vector<float>& f = frequencies(il);
  const std::vector<float> sinks = vector(il, "attn_sinks.weight");
  const auto n = static_cast<int64_t>(x.size());
  constexpr size_t kHead = V4Shape::D;

  std::vector<Vector> kv;
  for (int64_t pos = 0; pos < n; ++pos) {
    Vector row = rms_norm(
        linear(x[static_cast<size_t>(pos)], matrix(il, "attn_kv.weight")),
        vector(il, "attn_kv_a_norm.weight"), kEps);
    rotate(row, f, pos, false);
    if (shape_.official_rounding) round_fp8({row.data(), V4Shape::D - V4Shape::R});
    kv.push_back(std::move(row));
  }
  std::vector<Vector> compressed;
  std::vector<Vector> index_rows;
  if (ratio != 0) compressed = compress(il, "attn_compressor", x, V4Shape::D);
  if (ratio == 4) index_rows = compress(il, "indexer_compressor", x, V4Shape::ID);

  std::vector<Vector> out;
  for (int64_t pos = 0; pos < n; ++pos) {
    const Vector& here = x[static_cast<size_t>(pos)];
    const Vector qr = rms_norm(
        linear(here, matrix(il, "attn_q_a.weight")), vector(il, "attn_q_a_norm.weight"), kEps);
    Vector q = linear(qr, matrix(il, "attn_q_b.weight"));

    std::vector<Vector> seen(
        kv.begin() + std::max<int64_t>(0, pos - V4Shape::W + 1), kv.begin() + pos + 1);
    if (ratio == 128) {
      seen.insert(seen.end(), compressed.begin(), compressed.begin() + (pos + 1) / 128);
    } else if (ratio == 4) {
      for (const int32_t t : select(il, here, qr, index_rows, pos)) {
        seen.push_back(compressed[static_cast<size_t>(t)]);
      }
    }

    Vector heads;
    for (size_t h = 0; h < static_cast<size_t>(shape_.H); ++h) {
      const std::span<double> head(q.data() + h * kHead, kHead);
      const double scale = inverse_rms(head, kEps);
      for (double& v : head) v *= scale;
      rotate(head, f, pos, false);
      Vector o = attend(head, seen, static_cast<double>(sinks[h]));
      rotate(o, f, pos, true);
      heads.insert(heads.end(), o.begin(), o.end());
    }

    const Tensor64& o_a = matrix(il, "attn_output_a.weight");
    Vector low;
    const size_t group_width = heads.size() / static_cast<size_t>(shape_.G);
    for (int64_t g = 0; g < shape_.G; ++g) {
      const double* part = heads.data() + static_cast<size_t>(g) * group_width;
      for (int64_t r = g * shape_.OL; r < (g + 1) * shape_.OL; ++r) {
        double sum = 0;
        for (size_t i = 0; i < group_width; ++i) sum += o_a.row(r)[i] * part[i];
        low.push_back(sum);
      }
    }
    out.push_back(linear(low, matrix(il, "attn_output_b.weight")));
  }
  return out;
}

std::vector<Vector> V4::compress(
    int64_t il, const std::string& prefix, const std::vector<Vector>& x, int64_t d) const {
  const int64_t ratio = shape_.ratios[static_cast<size_t>(il)];
  const int64_t width = ratio == 4 ? 2 * d : d;
  const Tensor64& ape = matrix(il, prefix + "_ape.weight");
  std::vector<Vector> u;
  std::vector<Vector> g;
  for (size_t pos = 0; pos < x.size(); ++pos) {
    u.push_back(linear(x[pos], matrix(il, prefix + "_kv.weight")));
    g.push_back(linear(x[pos], matrix(il, prefix + "_gate.weight")));
    const double* r = ape.row(static_cast<int64_t>(pos) % ratio);
    for (int64_t i = 0; i < width; ++i) g.back()[static_cast<size_t>(i)] += r[i];
  }
  const auto half = [&](const Vector& v, int64_t begin) {
    return Vector(v.begin() + begin, v.begin() + begin + d);
  };
  std::vector<Vector> rows;
  for (int64_t t = 0; (t + 1) * ratio <= static_cast<int64_t>(x.size()); ++t) {
    std::vector<Vector> slots_u;
    std::vector<Vector> slots_g;
    const int64_t first = ratio == 4 && t > 0 ? (t - 1) * ratio : t * ratio;
    for (int64_t pos = first; pos < (t + 1) * ratio; ++pos) {
      const int64_t begin = ratio == 4 && pos >= t * ratio ? d : 0;
      slots_u.push_back(half(u[static_cast<size_t>(pos)], begin));
      slots_g.push_back(half(g[static_cast<size_t>(pos)], begin));
    }
    Vector row = rms_norm(pool(slots_u, slots_g), vector(il, prefix + "_norm.weight"), kEps);
    rotate(row, frequencies(il), t * ratio, false);
    if (shape_.official_rounding && d == V4Shape::D) {
      round_fp8({row.data(), V4Shape::D - V4Shape::R});
    } else if (shape_.official_rounding) {
      hadamard(row);
      round_fp4(row);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<int32_t> V4::select(
    int64_t il, const Vector& x, const Vector& qr, const std::vector<Vector>& index_rows,
    int64_t pos) const {
  Vector q = linear(qr, matrix(il, "indexer.attn_q_b.weight"));
  for (int64_t h = 0; h < shape_.IH; ++h) {
    const std::span<double> head(q.data() + h * V4Shape::ID, V4Shape::ID);
    rotate(head, frequencies(il), pos, false);
    if (!shape_.official_rounding) continue;
    hadamard(head);
    round_fp4(head);
  }
  const Vector w = linear(x, matrix(il, "indexer.proj.weight"));
  Vector scores;
  for (int64_t t = 0; t < (pos + 1) / 4; ++t) {
    scores.push_back(index_score(q, index_rows[static_cast<size_t>(t)], w));
  }
  return top_indices(scores, shape_.TK);
}

Vector V4::moe(int64_t il, const Vector& x, int32_t token) const {
  const Vector scores = route_scores(x, matrix(il, "ffn_gate_inp.weight"));
  std::vector<int32_t> ids;
  if (il < shape_.hash_layers) {
    const HostWeight& table = weights_.at(layer_name(il, "ffn_gate_tid2eid.weight")).front();
    ids.resize(static_cast<size_t>(shape_.K));
    const size_t bytes = ids.size() * sizeof(int32_t);
    std::memcpy(ids.data(), table.bytes.data() + static_cast<size_t>(token) * bytes, bytes);
  } else {
    const std::vector<float> bias = vector(il, "exp_probs_b.bias");
    Vector biased = scores;
    for (size_t e = 0; e < biased.size(); ++e) biased[e] += static_cast<double>(bias[e]);
    ids = top_indices(biased, shape_.K);
  }
  const Vector weights = route_weights(scores, ids, shape_.expert_scale);
  Vector sum = expert(
      x, matrix(il, "ffn_gate_shexp.weight"), matrix(il, "ffn_up_shexp.weight"),
      matrix(il, "ffn_down_shexp.weight"), shape_.swiglu_limit, 1);
  const auto& gate = weights_.at(layer_name(il, "ffn_gate_exps.weight"));
  const auto& up = weights_.at(layer_name(il, "ffn_up_exps.weight"));
  const auto& down = weights_.at(layer_name(il, "ffn_down_exps.weight"));
  for (size_t k = 0; k < ids.size(); ++k) {
    const auto e = static_cast<size_t>(ids[k]);
    const Vector part =
        expert(x, gate[e].values, up[e].values, down[e].values, shape_.swiglu_limit, weights[k]);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  return sum;
}

Tensor64 V4::head(const Tensor64& streams) const {
  Tensor64 out(streams.rows, shape_.V);
  const double scale = matrix(-1, "output_hc_scale.weight").at(0, 0);
  for (int64_t t = 0; t < streams.rows; ++t) {
    const Vector row = linear(
        head_row(
            row_of(streams, t), matrix(-1, "output_hc_fn.weight"), scale,
            vector(-1, "output_hc_base.weight"), vector(-1, "output_norm.weight"), kEps, kEps),
        matrix(-1, "output.weight"));
    std::copy(row.begin(), row.end(), out.row(t));
  }
  return out;
}

}  // namespace tandem::test::naive
