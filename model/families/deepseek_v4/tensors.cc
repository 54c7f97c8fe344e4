#include "model/families/deepseek_v4/tensors.h"

#include <initializer_list>
#include <utility>

#include "base/status.h"

namespace tandem {
namespace {

using Dims = std::vector<int64_t>;
using DTypes = std::vector<DType>;

// How each kind of tensor may be stored. The first type is the published one.
DTypes vector_types() {
  return {DType::kF32};
}
DTypes mixer_types() {
  return {DType::kF16, DType::kF32};
}
DTypes side_types() {
  return {DType::kF16, DType::kF32, DType::kBF16};
}
DTypes side_matrix_types() {
  return {DType::kF16, DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ6_K};
}
DTypes embedding_types() {
  return {DType::kF16, DType::kBF16, DType::kQ8_0, DType::kF32};
}
DTypes matrix_types() {
  return {DType::kQ8_0, DType::kBF16, DType::kF16, DType::kF32, DType::kQ6_K, DType::kQ4_K};
}
DTypes expert_types() {
  return {DType::kQ4_K, DType::kIQ2_XXS, DType::kQ2_K, DType::kMXFP4, DType::kQ6_K,
          DType::kQ8_0, DType::kF16,     DType::kBF16, DType::kF32};
}

// Collects the tensors under one prefix.
class Lister {
 public:
  Lister(TensorPlan& plan, std::string prefix, int layer, TensorUse use)
      : plan_(plan), prefix_(std::move(prefix)), layer_(layer), use_(use) {}

  int add(
      const char* name, Dims dims, DTypes dtypes, std::initializer_list<const char*> aliases = {}) {
    TensorSpec spec;
    spec.name = prefix_ + name;
    for (const char* alias : aliases) spec.aliases.push_back(prefix_ + alias);
    spec.dims = std::move(dims);
    spec.dtypes = std::move(dtypes);
    spec.layer = layer_;
    spec.use = use_;
    plan_.push_back(std::move(spec));
    return static_cast<int>(plan_.size()) - 1;
  }

 private:
  TensorPlan& plan_;
  std::string prefix_;
  int layer_;
  TensorUse use_;
};

void add_attention(Lister& list, const V4Config& c) {
  const int64_t mix_width = (2 + c.hc_streams) * c.hc_streams;
  const int64_t heads_width = c.num_heads * c.head_dim;
  list.add(
      "hc_attn_fn.weight", {c.hc_streams * c.hidden_dim, mix_width}, mixer_types(), {"hc_attn_fn"});
  list.add("hc_attn_scale.weight", {3}, vector_types(), {"hc_attn_scale"});
  list.add("hc_attn_base.weight", {mix_width}, vector_types(), {"hc_attn_base"});
  list.add("attn_norm.weight", {c.hidden_dim}, vector_types());
  list.add("attn_q_a.weight", {c.hidden_dim, c.q_lora_rank}, matrix_types());
  list.add("attn_q_a_norm.weight", {c.q_lora_rank}, vector_types());
  list.add("attn_q_b.weight", {c.q_lora_rank, heads_width}, matrix_types());
  list.add("attn_kv.weight", {c.hidden_dim, c.head_dim}, matrix_types(), {"attn_kv_latent.weight"});
  list.add("attn_kv_a_norm.weight", {c.head_dim}, vector_types());
  list.add("attn_sinks.weight", {c.num_heads}, vector_types(), {"attn_sinks"});
  list.add(
      "attn_output_a.weight", {heads_width / c.o_groups, c.o_groups * c.o_lora_rank},
      matrix_types());
  list.add("attn_output_b.weight", {c.o_groups * c.o_lora_rank, c.hidden_dim}, matrix_types());
}

void add_compressor(Lister& list, const V4Config& c, int64_t ratio) {
  // Ratio 4 keeps two projections a token: windows of neighbouring rows overlap.
  const int64_t width = (ratio == 4 ? 2 : 1) * c.head_dim;
  list.add(
      "attn_compressor_kv.weight", {c.hidden_dim, width}, side_matrix_types(),
      {"attn_compress_kv.weight", "attn_compress_kv"});
  list.add(
      "attn_compressor_gate.weight", {c.hidden_dim, width}, side_matrix_types(),
      {"attn_compress_gate.weight", "attn_compress_gate"});
  list.add(
      "attn_compressor_ape.weight", {width, ratio}, side_types(),
      {"attn_compress_ape.weight", "attn_compress_ape"});
  list.add(
      "attn_compressor_norm.weight", {c.head_dim}, vector_types(),
      {"attn_compress_norm.weight", "attn_compress_norm"});
}

void add_indexer(Lister& list, const V4Config& c, int64_t ratio) {
  const int64_t width = 2 * c.indexer_dim;
  list.add(
      "indexer.attn_q_b.weight", {c.q_lora_rank, c.indexer_heads * c.indexer_dim},
      side_matrix_types());
  list.add("indexer.proj.weight", {c.hidden_dim, c.indexer_heads}, side_matrix_types());
  list.add(
      "indexer_compressor_kv.weight", {c.hidden_dim, width}, side_matrix_types(),
      {"indexer.compress_kv.weight", "indexer.compress_kv"});
  list.add(
      "indexer_compressor_gate.weight", {c.hidden_dim, width}, side_matrix_types(),
      {"indexer.compress_gate.weight", "indexer.compress_gate"});
  list.add(
      "indexer_compressor_ape.weight", {width, ratio}, side_types(),
      {"indexer.compress_ape.weight", "indexer.compress_ape"});
  list.add(
      "indexer_compressor_norm.weight", {c.indexer_dim}, vector_types(),
      {"indexer.compress_norm.weight", "indexer.compress_norm"});
}

void add_experts(TensorPlan& plan, Lister& list, const V4Config& c, bool hash_routed) {
  const int64_t mix_width = (2 + c.hc_streams) * c.hc_streams;
  list.add(
      "hc_ffn_fn.weight", {c.hc_streams * c.hidden_dim, mix_width}, mixer_types(), {"hc_ffn_fn"});
  list.add("hc_ffn_scale.weight", {3}, vector_types(), {"hc_ffn_scale"});
  list.add("hc_ffn_base.weight", {mix_width}, vector_types(), {"hc_ffn_base"});
  list.add("ffn_norm.weight", {c.hidden_dim}, vector_types());
  list.add("ffn_gate_inp.weight", {c.hidden_dim, c.num_experts}, side_types());
  if (hash_routed) {
    list.add(
        "ffn_gate_tid2eid.weight", {c.num_experts_used, c.vocab_size}, {DType::kI32},
        {"ffn_gate_tid2eid"});
  } else {
    list.add("exp_probs_b.bias", {c.num_experts}, vector_types(), {"exp_probs_b"});
  }
  const int gate =
      list.add("ffn_gate_exps.weight", {c.hidden_dim, c.expert_dim, c.num_experts}, expert_types());
  const int up =
      list.add("ffn_up_exps.weight", {c.hidden_dim, c.expert_dim, c.num_experts}, expert_types());
  plan[static_cast<size_t>(up)].same_dtype_as = gate;
  list.add("ffn_down_exps.weight", {c.expert_dim, c.hidden_dim, c.num_experts}, expert_types());
  list.add("ffn_gate_shexp.weight", {c.hidden_dim, c.expert_dim}, matrix_types());
  list.add("ffn_up_shexp.weight", {c.hidden_dim, c.expert_dim}, matrix_types());
  list.add("ffn_down_shexp.weight", {c.expert_dim, c.hidden_dim}, matrix_types());
}

}  // namespace

TensorPlan v4_tensor_plan(const V4Config& c) {
  TensorPlan plan;
  Lister embedding(plan, "", -1, TensorUse::kEmbedding);
  embedding.add("token_embd.weight", {c.hidden_dim, c.vocab_size}, embedding_types());
  for (int il = 0; il < static_cast<int>(c.num_layers); ++il) {
    Lister layer(plan, str_cat("blk.", il, "."), il, TensorUse::kLayer);
    const int64_t ratio = c.compress_ratios[static_cast<size_t>(il)];
    add_attention(layer, c);
    if (ratio != 0) add_compressor(layer, c, ratio);
    if (ratio == 4) add_indexer(layer, c, ratio);
    add_experts(plan, layer, c, il < c.num_hash_layers);
  }
  Lister head(plan, "", -1, TensorUse::kHead);
  head.add(
      "output_hc_fn.weight", {c.hc_streams * c.hidden_dim, c.hc_streams}, mixer_types(),
      {"output_hc_fn", "hc_head_fn.weight", "hc_head_fn"});
  head.add(
      "output_hc_base.weight", {c.hc_streams}, vector_types(),
      {"output_hc_base", "hc_head_base.weight", "hc_head_base"});
  head.add(
      "output_hc_scale.weight", {1}, vector_types(),
      {"output_hc_scale", "hc_head_scale.weight", "hc_head_scale"});
  head.add("output_norm.weight", {c.hidden_dim}, vector_types());
  head.add("output.weight", {c.hidden_dim, c.vocab_size}, matrix_types());
  for (int64_t i = 0; i < c.num_mtp_layers; ++i) {
    TensorSpec draft;
    draft.name = str_cat("blk.", c.num_layers + i, ".");
    draft.required = false;
    draft.use = TensorUse::kIgnored;
    plan.push_back(std::move(draft));
  }
  return plan;
}

TensorPlan v4_mtp_tensor_plan(const V4Config& c) {
  TensorPlan plan;
  Lister list(plan, "mtp.0.", 0, TensorUse::kLayer);
  list.add("e_proj.weight", {c.hidden_dim, c.hidden_dim}, matrix_types());
  list.add("h_proj.weight", {c.hidden_dim, c.hidden_dim}, matrix_types());
  list.add("enorm.weight", {c.hidden_dim}, vector_types());
  list.add("hnorm.weight", {c.hidden_dim}, vector_types());
  list.add("norm.weight", {c.hidden_dim}, vector_types());
  list.add(
      "hc_head_fn.weight", {c.hc_streams * c.hidden_dim, c.hc_streams}, mixer_types(),
      {"hc_head_fn"});
  list.add("hc_head_base.weight", {c.hc_streams}, vector_types(), {"hc_head_base"});
  list.add("hc_head_scale.weight", {1}, vector_types(), {"hc_head_scale"});
  add_attention(list, c);
  add_experts(plan, list, c, /*hash_routed=*/false);
  return plan;
}

}  // namespace tandem
