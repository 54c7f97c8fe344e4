#include "model/families/deepseek_v4/program.h"

#include <string>
#include <unordered_map>

#include "model/families/deepseek_v4/rotary.h"
#include "model/families/deepseek_v4/state.h"

namespace tandem {
namespace {

constexpr RotaryId kPlainRotary = 0;
constexpr RotaryId kYarnRotary = 1;

/// Values are named once and used by every layer: a layer starts when the one before is done.
struct Values {
  ValueId streams, normed, mix, branch;
  ValueId q_latent, q, kv_row, heads;
  ValueId compress_projected, index_projected, selection;
  ValueId expert_ids, expert_weights;
};

class ProgramWriter {
 public:
  ProgramWriter(const V4Config& config, const TensorPlan& tensors, const LayerRange& range)
      : config_(config), state_(v4_state(config, range, DType::kF32)) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      ids_.emplace(tensors[i].name, static_cast<TensorId>(i));
    }
    program_.range = range;
    program_.vocab_size = config.vocab_size;
    program_.rotaries = {
        {config.rope_dim, v4_plain_frequencies(config)},
        {config.rope_dim, v4_yarn_frequencies(config)}};
    name_values();
    program_.streams = values_.streams;
  }

  Program write() && {
    const LayerRange& range = program_.range;
    if (range.embeds) {
      add(-1, EmbedOp{global("token_embd.weight"), values_.streams, config_.hc_streams});
    }
    for (int32_t layer = range.begin; layer < range.end; ++layer) write_layer(layer);
    if (range.emits_logits) write_head();
    return std::move(program_);
  }

 private:
  ValueId value(std::string name, int64_t width, ValueType type = ValueType::kF32) {
    program_.values.push_back({std::move(name), type, width});
    return static_cast<ValueId>(program_.values.size() - 1);
  }

  void name_values() {
    const int64_t s = config_.hc_streams;
    const int64_t heads_width = config_.num_heads * config_.head_dim;
    values_.streams = value("streams", s * config_.hidden_dim);
    values_.normed = value("normed", config_.hidden_dim);
    values_.mix = value("mix", s + s * s);
    values_.branch = value("branch", config_.hidden_dim);
    values_.q_latent = value("q_latent", config_.q_lora_rank);
    values_.q = value("q", heads_width);
    values_.kv_row = value("kv_row", config_.head_dim);
    values_.heads = value("heads", heads_width);
    values_.compress_projected = value("compress_projected", 4 * config_.head_dim);
    values_.index_projected = value("index_projected", 4 * config_.indexer_dim);
    values_.selection = value("selection", config_.index_top_k, ValueType::kI32);
    values_.expert_ids = value("expert_ids", config_.num_experts_used, ValueType::kI32);
    values_.expert_weights = value("expert_weights", config_.num_experts_used);
  }

  TensorId global(const std::string& name) const { return ids_.at(name); }
  TensorId tensor(int32_t layer, const char* name) const {
    return ids_.at("blk." + std::to_string(layer) + "." + name);
  }
  void add(int32_t layer, OpBody body) { program_.ops.push_back({layer, body}); }
  RowRounding row_rounding() const {
    return config_.official_rounding ? RowRounding::kFp8 : RowRounding::kNone;
  }
  RowRounding index_rounding() const {
    return config_.official_rounding ? RowRounding::kHadamardFp4 : RowRounding::kNone;
  }

  void write_layer(int32_t layer) {
    write_hc_pre(layer, "attn");
    write_attention(layer);
    add(layer, HcPostOp{values_.streams, values_.branch, values_.mix, config_.hc_streams});
    write_hc_pre(layer, "ffn");
    write_experts(layer);
    add(layer, HcPostOp{values_.streams, values_.branch, values_.mix, config_.hc_streams});
  }

  void write_hc_pre(int32_t layer, const std::string& branch) {
    HcPreOp op;
    op.streams = values_.streams;
    op.fn = tensor(layer, ("hc_" + branch + "_fn.weight").c_str());
    op.scale = tensor(layer, ("hc_" + branch + "_scale.weight").c_str());
    op.base = tensor(layer, ("hc_" + branch + "_base.weight").c_str());
    op.norm = tensor(layer, (branch + "_norm.weight").c_str());
    op.normed = values_.normed;
    op.mix = values_.mix;
    op.num_streams = config_.hc_streams;
    op.sinkhorn_iterations = static_cast<int32_t>(config_.sinkhorn_iterations);
    op.hc_eps = config_.hc_eps;
    op.rms_eps = config_.rms_eps;
    add(layer, op);
  }

  void write_attention(int32_t layer) {
    const int64_t ratio = config_.compress_ratios[layer];
    const RotaryId rotary = ratio == 0 ? kPlainRotary : kYarnRotary;
    const V4LayerSlabs& slabs = state_.layers[layer - program_.range.begin];
    write_qkv(layer, rotary);
    if (ratio != 0) {
      write_compress(
          layer, "attn_compressor", slabs.compress_history, slabs.compressed_rows,
          values_.compress_projected, config_.head_dim, row_rounding());
    }
    if (ratio == 4) {
      write_compress(
          layer, "indexer_compressor", slabs.index_history, slabs.index_rows,
          values_.index_projected, config_.indexer_dim, index_rounding());
      write_index_select(layer, slabs.index_rows);
    }

    AttendOp attend;
    attend.q = values_.q;
    attend.kv_row = values_.kv_row;
    attend.window_rows = slabs.window_rows;
    attend.compressed_rows = slabs.compressed_rows;
    attend.selection = ratio == 4 ? values_.selection : kNone;
    attend.sinks = tensor(layer, "attn_sinks.weight");
    attend.out = values_.heads;
    attend.num_heads = config_.num_heads;
    attend.head_dim = config_.head_dim;
    attend.window = config_.window;
    attend.ratio = ratio;
    attend.rotary = rotary;
    add(layer, attend);

    add(layer, RingAppendOp{values_.kv_row, slabs.window_rows});
    if (ratio != 0) add(layer, RingAppendOp{values_.compress_projected, slabs.compress_history});
    if (ratio == 4) add(layer, RingAppendOp{values_.index_projected, slabs.index_history});
    add(layer, OutputProjectOp{
                   values_.heads, tensor(layer, "attn_output_a.weight"),
                   tensor(layer, "attn_output_b.weight"), values_.branch, config_.o_groups});
  }

  void write_qkv(int32_t layer, RotaryId rotary) {
    QkvOp op;
    op.x = values_.normed;
    op.q_a = tensor(layer, "attn_q_a.weight");
    op.q_a_norm = tensor(layer, "attn_q_a_norm.weight");
    op.q_b = tensor(layer, "attn_q_b.weight");
    op.kv = tensor(layer, "attn_kv.weight");
    op.kv_norm = tensor(layer, "attn_kv_a_norm.weight");
    op.q_latent = values_.q_latent;
    op.q = values_.q;
    op.kv_row = values_.kv_row;
    op.num_heads = config_.num_heads;
    op.head_dim = config_.head_dim;
    op.rotary = rotary;
    op.rms_eps = config_.rms_eps;
    op.rounding = row_rounding();
    add(layer, op);
  }

  void write_compress(
      int32_t layer, const std::string& prefix, SlabId history, SlabId rows, ValueId projected,
      int64_t row_dim, RowRounding rounding) {
    CompressOp op;
    op.x = values_.normed;
    op.kv = tensor(layer, (prefix + "_kv.weight").c_str());
    op.gate = tensor(layer, (prefix + "_gate.weight").c_str());
    op.ape = tensor(layer, (prefix + "_ape.weight").c_str());
    op.norm = tensor(layer, (prefix + "_norm.weight").c_str());
    op.projected = projected;
    op.history = history;
    op.rows = rows;
    op.ratio = config_.compress_ratios[layer];
    op.row_dim = row_dim;
    op.rotary = kYarnRotary;
    op.rms_eps = config_.rms_eps;
    op.rounding = rounding;
    add(layer, op);
  }

  void write_index_select(int32_t layer, SlabId rows) {
    IndexSelectOp op;
    op.x = values_.normed;
    op.q_latent = values_.q_latent;
    op.q_b = tensor(layer, "indexer.attn_q_b.weight");
    op.weights = tensor(layer, "indexer.proj.weight");
    op.rows = rows;
    op.selection = values_.selection;
    op.num_heads = config_.indexer_heads;
    op.head_dim = config_.indexer_dim;
    op.ratio = config_.compress_ratios[layer];
    op.top_k = config_.index_top_k;
    op.rotary = kYarnRotary;
    op.rounding = index_rounding();
    add(layer, op);
  }

  void write_experts(int32_t layer) {
    const bool hashed = layer < config_.num_hash_layers;
    RouteOp route;
    route.x = values_.normed;
    route.gate = tensor(layer, "ffn_gate_inp.weight");
    route.bias = hashed ? kNone : tensor(layer, "exp_probs_b.bias");
    route.token_experts = hashed ? tensor(layer, "ffn_gate_tid2eid.weight") : kNone;
    route.expert_ids = values_.expert_ids;
    route.expert_weights = values_.expert_weights;
    route.top_k = config_.num_experts_used;
    route.scale = config_.expert_scale;
    add(layer, route);

    ExpertsOp experts;
    experts.x = values_.normed;
    experts.expert_ids = values_.expert_ids;
    experts.expert_weights = values_.expert_weights;
    experts.gate = tensor(layer, "ffn_gate_exps.weight");
    experts.up = tensor(layer, "ffn_up_exps.weight");
    experts.down = tensor(layer, "ffn_down_exps.weight");
    experts.shared_gate = tensor(layer, "ffn_gate_shexp.weight");
    experts.shared_up = tensor(layer, "ffn_up_shexp.weight");
    experts.shared_down = tensor(layer, "ffn_down_shexp.weight");
    experts.out = values_.branch;
    experts.swiglu_limit = config_.swiglu_limit;
    experts.shared_swiglu_limit = config_.shared_swiglu_limit;
    add(layer, experts);
  }

  void write_head() {
    HeadOp op;
    op.streams = values_.streams;
    op.fn = global("output_hc_fn.weight");
    op.scale = global("output_hc_scale.weight");
    op.base = global("output_hc_base.weight");
    op.norm = global("output_norm.weight");
    op.output = global("output.weight");
    op.num_streams = config_.hc_streams;
    op.vocab_size = config_.vocab_size;
    op.hc_eps = config_.hc_eps;
    op.rms_eps = config_.rms_eps;
    add(-1, op);
  }

  const V4Config& config_;
  V4State state_;
  std::unordered_map<std::string, TensorId> ids_;
  Program program_;
  Values values_{};
};

}  // namespace

Result<Program> v4_program(
    const V4Config& config, const TensorPlan& tensors, const LayerRange& range) {
  const auto num_layers = static_cast<int32_t>(config.num_layers);
  TANDEM_REQUIRE(
      range.begin >= 0 && range.begin < range.end && range.end <= num_layers,
      str_cat("layers ", range.begin, " to ", range.end, " are not within 0 to ", num_layers));
  TANDEM_REQUIRE(
      range.embeds == (range.begin == 0), "the stage with layer 0 embeds, and no other does");
  TANDEM_REQUIRE(
      range.emits_logits == (range.end == num_layers),
      "the stage with the last layer emits logits, and no other does");
  return ProgramWriter(config, tensors, range).write();
}

}  // namespace tandem
