#include "tests/model/families/deepseek_v4/v4_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "model/families/deepseek_v4/tensors.h"
#include "model/gguf/gguf_writer.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

struct KeySetter {
  GgufWriter& writer;
  const std::string& key;
  void operator()(uint32_t v) const { writer.set_u32(key, v); }
  void operator()(int64_t v) const { writer.set_i64(key, v); }
  void operator()(float v) const { writer.set_f32(key, v); }
  void operator()(bool v) const { writer.set_bool(key, v); }
  void operator()(const std::string& v) const { writer.set_string(key, v); }
  void operator()(const std::vector<int32_t>& v) const { writer.set_i32_array(key, v); }
  void operator()(const std::vector<float>& v) const { writer.set_f32_array(key, v); }
  void operator()(const std::vector<std::string>& v) const {
    writer.set_string_array(key, std::span<const std::string>(v));
  }
};

V4Config common_config() {
  V4Config c;
  c.context_length = 1 << 20;
  c.head_dim = 512;
  c.rope_dim = 64;
  c.window = 128;
  c.indexer_dim = 128;
  c.num_experts_used = 6;
  c.num_hash_layers = 3;
  c.swiglu_limit = 10;
  c.shared_swiglu_limit = 10;
  c.rope_base = 1e4f;
  c.compress_rope_base = 1.6e5f;
  c.yarn_factor = 16;
  c.yarn_original_context = 65536;
  c.yarn_beta_fast = 32;
  c.yarn_beta_slow = 1;
  c.rms_eps = 1e-6f;
  c.hc_streams = 4;
  c.sinkhorn_iterations = 20;
  c.hc_eps = 1e-6f;
  return c;
}

}  // namespace

V4Config flash_config() {
  V4Config c = common_config();
  c.variant = V4Variant::kFlash;
  c.num_layers = 43;
  c.hidden_dim = 4096;
  c.vocab_size = 129280;
  c.num_heads = 64;
  c.q_lora_rank = 1024;
  c.o_groups = 8;
  c.o_lora_rank = 1024;
  c.indexer_heads = 64;
  c.index_top_k = 512;
  c.num_experts = 256;
  c.expert_dim = 2048;
  c.expert_scale = 1.5f;
  c.compress_ratios = {0, 0};
  for (int i = 2; i < 43; ++i) c.compress_ratios.push_back(i % 2 == 0 ? 4 : 128);
  return c;
}

V4Config pro_config() {
  V4Config c = common_config();
  c.variant = V4Variant::kPro;
  c.num_layers = 61;
  c.hidden_dim = 7168;
  c.vocab_size = 129280;
  c.num_heads = 128;
  c.q_lora_rank = 1536;
  c.o_groups = 16;
  c.o_lora_rank = 1024;
  c.indexer_heads = 64;
  c.index_top_k = 1024;
  c.num_experts = 384;
  c.expert_dim = 3072;
  c.expert_scale = 2.5f;
  c.compress_ratios = {128, 128};
  for (int i = 2; i < 61; ++i) c.compress_ratios.push_back(i % 2 == 0 ? 4 : 128);
  return c;
}

V4Config small_config() {
  V4Config c = common_config();
  c.num_layers = 5;
  c.hidden_dim = 256;
  c.vocab_size = 40;
  c.num_heads = 4;
  c.q_lora_rank = 64;
  c.o_groups = 2;
  c.o_lora_rank = 32;
  c.indexer_heads = 2;
  c.index_top_k = 8;
  c.num_experts = 8;
  c.expert_dim = 256;
  c.expert_scale = 1.25f;
  c.compress_ratios = {0, 128, 4, 128, 4};
  return c;
}

FileTensor& V4File::tensor(const std::string& name) {
  const auto it = std::find_if(
      tensors.begin(), tensors.end(), [&](const FileTensor& t) { return t.name == name; });
  TANDEM_CHECK(it != tensors.end());
  return *it;
}

void V4File::drop(const std::string& name) {
  tensors.erase(tensors.begin() + (&tensor(name) - tensors.data()));
}

GgufFile V4File::open() const {
  GgufWriter writer;
  for (const auto& [key, value] : keys) std::visit(KeySetter{writer, key}, value);
  for (const FileTensor& t : tensors) writer.add_zeros(t.name, t.dtype, t.dims);
  const std::string path = temp_path("v4.gguf");
  EXPECT_OK(writer.write(path));
  auto file = GgufFile::open(path);
  EXPECT_OK(file);
  ::unlink(path.c_str());
  return std::move(file).value();
}

V4File v4_file(const V4Config& c, const ExpertMix& mix) {
  V4File file;
  const auto set = [&](const char* key, auto value) {
    file.keys[str_cat("deepseek4.", key)] = std::move(value);
  };
  const auto u32 = [&](const char* key, int64_t value) { set(key, static_cast<uint32_t>(value)); };
  file.keys["general.architecture"] = std::string("deepseek4");
  u32("block_count", c.num_layers);
  u32("embedding_length", c.hidden_dim);
  u32("vocab_size", c.vocab_size);
  u32("context_length", c.context_length);
  u32("attention.head_count", c.num_heads);
  u32("attention.head_count_kv", 1);
  u32("attention.key_length", c.head_dim);
  u32("attention.value_length", c.head_dim);
  u32("rope.dimension_count", c.rope_dim);
  u32("attention.q_lora_rank", c.q_lora_rank);
  u32("attention.output_lora_rank", c.o_lora_rank);
  u32("attention.output_group_count", c.o_groups);
  u32("expert_count", c.num_experts);
  u32("expert_used_count", c.num_experts_used);
  u32("expert_feed_forward_length", c.expert_dim);
  u32("expert_shared_count", 1);
  u32("expert_gating_func", 4);
  u32("expert_group_count", 0);
  u32("expert_group_used_count", 0);
  u32("nextn_predict_layers", 0);
  set("expert_weights_scale", c.expert_scale);
  set("expert_weights_norm", true);
  u32("hash_layer_count", c.num_hash_layers);
  u32("attention.sliding_window", c.window);
  u32("attention.indexer.head_count", c.indexer_heads);
  u32("attention.indexer.key_length", c.indexer_dim);
  u32("attention.indexer.top_k", c.index_top_k);
  set("attention.compress_ratios",
      std::vector<int32_t>(c.compress_ratios.begin(), c.compress_ratios.end()));
  set("attention.compress_rope_freq_base", c.compress_rope_base);
  set("rope.freq_base", c.rope_base);
  set("rope.scaling.factor", c.yarn_factor);
  u32("rope.scaling.original_context_length", c.yarn_original_context);
  set("rope.scaling.yarn_beta_fast", c.yarn_beta_fast);
  set("rope.scaling.yarn_beta_slow", c.yarn_beta_slow);
  set("rope.scaling.type", std::string("yarn"));
  set("attention.layer_norm_rms_epsilon", c.rms_eps);
  u32("hyper_connection.count", c.hc_streams);
  u32("hyper_connection.sinkhorn_iterations", c.sinkhorn_iterations);
  set("hyper_connection.epsilon", c.hc_eps);
  set("swiglu_clamp_exp", std::vector<float>(static_cast<size_t>(c.num_layers), c.swiglu_limit));
  set("swiglu_clamp_shexp", c.shared_swiglu_limit);
  file.keys["tandem.fake_quant"] = std::string(c.official_rounding ? "official" : "none");

  for (const TensorSpec& spec : v4_tensor_plan(c)) {
    FileTensor tensor{spec.name, spec.dtypes[0], {spec.dims.begin(), spec.dims.end()}};
    if (spec.name.ends_with("_exps.weight")) {
      tensor.dtype = spec.name.ends_with("down_exps.weight") ? mix.down : mix.gate_up;
    }
    file.tensors.push_back(std::move(tensor));
  }
  return file;
}

}  // namespace tandem::test
