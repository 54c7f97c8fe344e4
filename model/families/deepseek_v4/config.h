#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// The published shapes; a small model has the same architecture with smaller numbers.
enum class V4Variant { kFlash, kPro, kSmall };

/// "V4 Flash", "V4 PRO" or "V4 small".
const char* v4_variant_name(V4Variant variant);

/// Every number of a DeepSeek V4 model that the forward pass needs, checked.
struct V4Config {
  V4Variant variant = V4Variant::kSmall;

  int64_t num_layers = 0;      // executed layers, without a draft block
  int64_t num_mtp_layers = 0;  // draft blocks inside the file, behind the executed layers
  int64_t hidden_dim = 0;
  int64_t vocab_size = 0;
  int64_t context_length = 0;  // trained positions

  int64_t num_heads = 0;  // one K/V row is shared by all of them
  int64_t head_dim = 0;
  int64_t rope_dim = 0;  // the last dims of a head
  int64_t q_lora_rank = 0;
  int64_t o_groups = 0;
  int64_t o_lora_rank = 0;
  int64_t window = 0;
  int64_t indexer_heads = 0;
  int64_t indexer_dim = 0;
  int64_t index_top_k = 0;
  std::vector<int64_t> compress_ratios;  // [num_layers]: 0, 4 or 128

  int64_t num_experts = 0;
  int64_t num_experts_used = 0;
  int64_t expert_dim = 0;
  int64_t num_hash_layers = 0;
  float expert_scale = 0;
  float swiglu_limit = 0;         // routed experts
  float shared_swiglu_limit = 0;  // shared expert

  float rope_base = 0;           // ratio-0 layers, not scaled
  float compress_rope_base = 0;  // the other layers, scaled by YaRN
  float yarn_factor = 0;
  int64_t yarn_original_context = 0;
  float yarn_beta_fast = 0;
  float yarn_beta_slow = 0;

  float rms_eps = 0;
  int64_t hc_streams = 0;
  int64_t sinkhorn_iterations = 0;
  float hc_eps = 0;

  // State rows and index queries are rounded to FP8 and FP4 as in training. False only for files
  // that say so (tandem.fake_quant = none).
  bool official_rounding = true;
};

/// All fields on one line of `name=value`, the same for equal configurations.
std::string v4_config_text(const V4Config& config);

/// FNV-1a of v4_config_text(): tells files with other effective hyper-parameters apart.
uint64_t v4_config_hash(const V4Config& config);

}  // namespace tandem
