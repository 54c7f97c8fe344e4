#include "model/families/deepseek_v4/rules.h"

#include "base/limits.h"

namespace tandem::v4 {
namespace {

using C = V4Config;

// clang-format off
constexpr IntRule kIntRules[] = {
    // key                             field                     Flash    PRO      small: min, max, multiple
    {"embedding_length",               &C::hidden_dim,           4096,    7168,    32, 7168, 32,     Absent::kIssue},
    {"vocab_size",                     &C::vocab_size,           129280,  129280,  1, 129280, 1,     Absent::kIssue},
    {"context_length",                 &C::context_length,       1048576, 1048576, 1, kContextTokensMax, 1, Absent::kPublished},
    {"attention.head_count",           &C::num_heads,            64,      128,     1, 128, 1,        Absent::kIssue},
    {"attention.head_count_kv",        nullptr,                  1,       1,       1, 1, 1,          Absent::kIssue},
    {"attention.key_length",           &C::head_dim,             512,     512,     512, 512, 1,      Absent::kIssue},
    {"attention.value_length",         nullptr,                  512,     512,     512, 512, 1,      Absent::kIssue},
    {"rope.dimension_count",           &C::rope_dim,             64,      64,      64, 64, 1,        Absent::kIssue},
    {"attention.q_lora_rank",          &C::q_lora_rank,          1024,    1536,    32, 1536, 32,     Absent::kIssue},
    {"attention.output_group_count",   &C::o_groups,             8,       16,      1, 16, 1,         Absent::kRecovered, Source::kOutputGroups},
    {"attention.output_lora_rank",     &C::o_lora_rank,          1024,    1024,    32, 1024, 32,     Absent::kRecovered, Source::kOutputRank},
    {"attention.sliding_window",       &C::window,               128,     128,     128, 128, 1,      Absent::kIssue},
    {"attention.indexer.head_count",   &C::indexer_heads,        64,      64,      1, 64, 1,         Absent::kIssue},
    {"attention.indexer.key_length",   &C::indexer_dim,          128,     128,     128, 128, 1,      Absent::kIssue},
    {"attention.indexer.top_k",        &C::index_top_k,          512,     1024,    1, 1024, 1,       Absent::kIssue},
    {"expert_count",                   &C::num_experts,          256,     384,     1, 384, 1,        Absent::kIssue},
    {"expert_used_count",              &C::num_experts_used,     6,       6,       1, 6, 1,          Absent::kIssue},
    {"expert_feed_forward_length",     &C::expert_dim,           2048,    3072,    32, 3072, 32,     Absent::kIssue},
    {"expert_shared_count",            nullptr,                  1,       1,       1, 1, 1,          Absent::kIssue},
    {"expert_gating_func",             nullptr,                  4,       4,       4, 4, 1,          Absent::kPublished},
    {"expert_group_count",             nullptr,                  0,       0,       0, 0, 1,          Absent::kPublished},
    {"expert_group_used_count",        nullptr,                  0,       0,       0, 0, 1,          Absent::kPublished},
    {"hash_layer_count",               &C::num_hash_layers,      3,       3,       0, 61, 1,         Absent::kRecovered, Source::kHashLayers},
    {"hyper_connection.count",         &C::hc_streams,           4,       4,       4, 4, 1,          Absent::kRecovered, Source::kStreams},
    {"hyper_connection.sinkhorn_iterations", &C::sinkhorn_iterations, 20, 20,      1, 64, 1,         Absent::kRecovered},
    {"rope.scaling.original_context_length", &C::yarn_original_context, 65536, 65536, 1, kContextTokensMax, 1, Absent::kPublished},
};

constexpr FloatRule kFloatRules[] = {
    // key                              field                   Flash   PRO     min    max
    {"expert_weights_scale",            &C::expert_scale,       1.5,    2.5,    1e-3,  1e3,  Absent::kIssue},
    {"rope.freq_base",                  &C::rope_base,          1e4,    1e4,    1.5,   1e9,  Absent::kIssue},
    {"attention.compress_rope_freq_base", &C::compress_rope_base, 1.6e5, 1.6e5, 1.5,   1e9,  Absent::kRecovered},
    {"rope.scaling.factor",             &C::yarn_factor,        16,     16,     1,     1e4,  Absent::kPublished},
    {"rope.scaling.yarn_beta_fast",     &C::yarn_beta_fast,     32,     32,     1e-3,  1e6,  Absent::kPublished},
    {"rope.scaling.yarn_beta_slow",     &C::yarn_beta_slow,     1,      1,      1e-3,  1e6,  Absent::kPublished},
    {"attention.layer_norm_rms_epsilon", &C::rms_eps,           1e-6,   1e-6,   1e-30, 1e-3, Absent::kIssue, true},
    {"hyper_connection.epsilon",        &C::hc_eps,             1e-6,   1e-6,   1e-30, 1e-3, Absent::kRecovered, true},
};
// clang-format on

}  // namespace

std::span<const IntRule> int_rules() {
  return kIntRules;
}

std::span<const FloatRule> float_rules() {
  return kFloatRules;
}

int64_t published_ratio(V4Variant variant, int64_t layer) {
  if (layer < 2) return variant == V4Variant::kPro ? 128 : 0;
  return layer % 2 == 0 ? 4 : 128;
}

}  // namespace tandem::v4
