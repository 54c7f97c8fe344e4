#include "model/families/deepseek_v4/config.h"

#include <limits>
#include <sstream>
#include <utility>

#include "base/check.h"

namespace tandem {

const char* v4_variant_name(V4Variant variant) {
  switch (variant) {
    case V4Variant::kFlash: return "V4 Flash";
    case V4Variant::kPro: return "V4 PRO";
    case V4Variant::kSmall: return "V4 small";
  }
  TANDEM_UNREACHABLE();
}

std::string v4_config_text(const V4Config& c) {
  std::ostringstream out;
  out.precision(std::numeric_limits<float>::max_digits10);
  out << "variant=" << v4_variant_name(c.variant) << " num_layers=" << c.num_layers
      << " hidden_dim=" << c.hidden_dim << " vocab_size=" << c.vocab_size
      << " num_heads=" << c.num_heads << " head_dim=" << c.head_dim << " rope_dim=" << c.rope_dim
      << " q_lora_rank=" << c.q_lora_rank << " o_groups=" << c.o_groups
      << " o_lora_rank=" << c.o_lora_rank << " window=" << c.window
      << " indexer_heads=" << c.indexer_heads << " indexer_dim=" << c.indexer_dim
      << " index_top_k=" << c.index_top_k << " compress_ratios=";
  for (const int64_t ratio : c.compress_ratios) out << ratio << ",";
  out << " num_experts=" << c.num_experts << " num_experts_used=" << c.num_experts_used
      << " expert_dim=" << c.expert_dim << " num_hash_layers=" << c.num_hash_layers
      << " expert_scale=" << c.expert_scale << " swiglu_limit=" << c.swiglu_limit
      << " shared_swiglu_limit=" << c.shared_swiglu_limit << " rope_base=" << c.rope_base
      << " compress_rope_base=" << c.compress_rope_base << " yarn_factor=" << c.yarn_factor
      << " yarn_original_context=" << c.yarn_original_context
      << " yarn_beta_fast=" << c.yarn_beta_fast << " yarn_beta_slow=" << c.yarn_beta_slow
      << " rms_eps=" << c.rms_eps << " hc_streams=" << c.hc_streams
      << " sinkhorn_iterations=" << c.sinkhorn_iterations << " hc_eps=" << c.hc_eps
      << " official_rounding=" << c.official_rounding;
  return std::move(out).str();
}

uint64_t v4_config_hash(const V4Config& config) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : v4_config_text(config)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace tandem
