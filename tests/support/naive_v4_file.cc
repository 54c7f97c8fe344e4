// Random weights and files for the naive V4 model.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "model/gguf/gguf_writer.h"
#include "tests/support/naive_v4.h"
#include "tests/support/status_matchers.h"

namespace tandem::test::naive {
namespace {

class WeightMaker {
 public:
  WeightMaker(const V4Shape& shape, const V4Types& types, uint64_t seed)
      : s_(shape), types_(types), seed_(seed) {}

  V4Weights make() && {
    matrix("token_embd.weight", types_.side, s_.V, s_.E, 1);
    for (int64_t il = 0; il < s_.layers(); ++il) make_layer(il);
    matrix("output_hc_fn.weight", types_.side, 4, 4 * s_.E, mix_deviation());
    vector("output_hc_base.weight", 4, 0, 0.5f);
    vector("output_hc_scale.weight", 1, 0.8f, 0);
    vector("output_norm.weight", s_.E, 1, 0.2f);
    matrix("output.weight", types_.output, s_.V, s_.E, over_root(s_.E));
    return std::move(out_);
  }

 private:
  static float over_root(int64_t fan_in) { return 1.0f / std::sqrt(static_cast<float>(fan_in)); }
  float mix_deviation() const { return over_root(4 * s_.E); }

  void matrix(const std::string& name, DType dtype, int64_t rows, int64_t cols, float deviation) {
    out_[name] = {random_weight(dtype, rows, cols, ++seed_, deviation)};
  }
  void vector(const std::string& name, int64_t size, float mean, float deviation) {
    Tensor values(1, size);
    values.values = random_vector(size, ++seed_, mean, deviation);
    out_[name] = {make_weight(DType::kF32, values)};
  }
  void experts(const std::string& name, int64_t rows, int64_t cols) {
    for (int64_t x = 0; x < s_.X; ++x) {
      out_[name].push_back(random_weight(types_.experts, rows, cols, ++seed_, over_root(cols)));
    }
  }

  void make_layer(int64_t il) {
    const std::string p = "blk." + std::to_string(il) + ".";
    const int64_t ratio = s_.ratios[static_cast<size_t>(il)];
    const DType m = types_.matrices;
    make_hc(p + "hc_attn", p + "attn_norm.weight");
    matrix(p + "attn_q_a.weight", m, s_.QL, s_.E, over_root(s_.E));
    vector(p + "attn_q_a_norm.weight", s_.QL, 1, 0.2f);
    matrix(p + "attn_q_b.weight", m, s_.H * V4Shape::D, s_.QL, over_root(s_.QL));
    matrix(p + "attn_kv.weight", m, V4Shape::D, s_.E, over_root(s_.E));
    vector(p + "attn_kv_a_norm.weight", V4Shape::D, 1, 0.2f);
    vector(p + "attn_sinks.weight", s_.H, 0, 1);
    const int64_t group_width = V4Shape::D * s_.H / s_.G;
    matrix(p + "attn_output_a.weight", m, s_.G * s_.OL, group_width, 4 * over_root(group_width));
    matrix(p + "attn_output_b.weight", m, s_.E, s_.G * s_.OL, over_root(s_.G * s_.OL));
    if (ratio != 0) make_compressor(p + "attn_compressor", ratio, V4Shape::D);
    if (ratio == 4) {
      matrix(
          p + "indexer.attn_q_b.weight", types_.side, s_.IH * V4Shape::ID, s_.QL, over_root(s_.QL));
      matrix(p + "indexer.proj.weight", types_.side, s_.IH, s_.E, over_root(s_.E));
      make_compressor(p + "indexer_compressor", ratio, V4Shape::ID);
    }
    make_hc(p + "hc_ffn", p + "ffn_norm.weight");
    matrix(p + "ffn_gate_inp.weight", types_.side, s_.X, s_.E, over_root(s_.E));
    if (il < s_.hash_layers) {
      make_hash_table(p + "ffn_gate_tid2eid.weight");
    } else {
      vector(p + "exp_probs_b.bias", s_.X, 0, 0.1f);
    }
    experts(p + "ffn_gate_exps.weight", s_.F, s_.E);
    experts(p + "ffn_up_exps.weight", s_.F, s_.E);
    experts(p + "ffn_down_exps.weight", s_.E, s_.F);
    matrix(p + "ffn_gate_shexp.weight", m, s_.F, s_.E, over_root(s_.E));
    matrix(p + "ffn_up_shexp.weight", m, s_.F, s_.E, over_root(s_.E));
    matrix(p + "ffn_down_shexp.weight", m, s_.E, s_.F, over_root(s_.F));
  }

  void make_hc(const std::string& prefix, const std::string& norm) {
    matrix(prefix + "_fn.weight", types_.side, 24, 4 * s_.E, mix_deviation());
    vector(prefix + "_scale.weight", 3, 0.8f, 0.2f);
    vector(prefix + "_base.weight", 24, 0, 0.5f);
    vector(norm, s_.E, 1, 0.2f);
  }

  void make_compressor(const std::string& prefix, int64_t ratio, int64_t d) {
    const int64_t width = ratio == 4 ? 2 * d : d;
    matrix(prefix + "_kv.weight", types_.side, width, s_.E, over_root(s_.E));
    matrix(prefix + "_gate.weight", types_.side, width, s_.E, over_root(s_.E));
    matrix(prefix + "_ape.weight", types_.side, ratio, width, 0.5f);
    vector(prefix + "_norm.weight", d, 1, 0.2f);
  }

  void make_hash_table(const std::string& name) {
    HostWeight table;
    table.dtype = DType::kI32;
    table.rows = s_.V;
    table.cols = s_.K;
    std::vector<int32_t> ids;
    Rng rng(++seed_);
    for (int64_t token = 0; token < s_.V; ++token) {
      std::vector<int32_t> order(static_cast<size_t>(s_.X));
      for (size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int32_t>(e);
      for (size_t e = order.size() - 1; e > 0; --e)
        std::swap(order[e], order[rng.next() % (e + 1)]);
      ids.insert(ids.end(), order.begin(), order.begin() + s_.K);
    }
    table.bytes.resize(ids.size() * sizeof(int32_t));
    std::memcpy(table.bytes.data(), ids.data(), table.bytes.size());
    out_[name] = {table};
  }

  const V4Shape& s_;
  V4Types types_;
  uint64_t seed_;
  V4Weights out_;
};

void set_metadata(GgufWriter& writer, const V4Shape& s) {
  const auto u32 = [&](const char* key, int64_t value) {
    writer.set_u32(std::string("deepseek4.") + key, static_cast<uint32_t>(value));
  };
  const auto f32 = [&](const char* key, double value) {
    writer.set_f32(std::string("deepseek4.") + key, static_cast<float>(value));
  };
  writer.set_string("general.architecture", "deepseek4");
  writer.set_string("tandem.fake_quant", s.official_rounding ? "official" : "none");
  u32("block_count", s.layers());
  u32("embedding_length", s.E);
  u32("vocab_size", s.V);
  u32("attention.head_count", s.H);
  u32("attention.head_count_kv", 1);
  u32("attention.key_length", V4Shape::D);
  u32("attention.value_length", V4Shape::D);
  u32("rope.dimension_count", V4Shape::R);
  u32("attention.q_lora_rank", s.QL);
  u32("attention.output_lora_rank", s.OL);
  u32("attention.output_group_count", s.G);
  u32("expert_count", s.X);
  u32("expert_used_count", s.K);
  u32("expert_feed_forward_length", s.F);
  u32("expert_shared_count", 1);
  f32("expert_weights_scale", s.expert_scale);
  writer.set_bool("deepseek4.expert_weights_norm", true);
  u32("expert_gating_func", 4);
  u32("hash_layer_count", s.hash_layers);
  u32("attention.sliding_window", V4Shape::W);
  u32("attention.indexer.head_count", s.IH);
  u32("attention.indexer.key_length", V4Shape::ID);
  u32("attention.indexer.top_k", s.TK);
  writer.set_i32_array("deepseek4.attention.compress_ratios", s.ratios);
  f32("attention.compress_rope_freq_base", 160000);
  f32("rope.freq_base", 10000);
  f32("rope.scaling.factor", 16);
  u32("rope.scaling.original_context_length", 65536);
  f32("rope.scaling.yarn_beta_fast", 32);
  f32("rope.scaling.yarn_beta_slow", 1);
  f32("attention.layer_norm_rms_epsilon", 1e-6);
  u32("hyper_connection.count", V4Shape::S);
  u32("hyper_connection.sinkhorn_iterations", 20);
  f32("hyper_connection.epsilon", 1e-6);
  const std::vector<float> limits(
      static_cast<size_t>(s.layers()), static_cast<float>(s.swiglu_limit));
  writer.set_f32_array("deepseek4.swiglu_clamp_exp", limits);
}

}  // namespace

V4Weights random_v4_weights(const V4Shape& shape, const V4Types& types, uint64_t seed) {
  return WeightMaker(shape, types, seed * 100000).make();
}

void write_v4_gguf(const std::string& path, const V4Shape& shape, const V4Weights& weights) {
  GgufWriter writer;
  set_metadata(writer, shape);
  for (const auto& [name, parts] : weights) {
    const HostWeight& first = parts.front();
    std::vector<uint64_t> dims = {static_cast<uint64_t>(first.cols)};
    if (first.rows > 1) dims.push_back(static_cast<uint64_t>(first.rows));
    if (parts.size() > 1) dims.push_back(parts.size());
    writer.add_tensor(name, first.dtype, dims, [&](const GgufWriter::Sink& sink) -> Status {
      for (const HostWeight& part : parts) TANDEM_TRY(sink(part.bytes));
      return {};
    });
  }
  EXPECT_OK(writer.write(path));
}

}  // namespace tandem::test::naive
