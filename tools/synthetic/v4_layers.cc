#include "tools/synthetic/v4_layers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/random.h"
#include "model/families/deepseek_v4/tensors.h"
#include "model/formats/quantize.h"
#include "model/gguf/gguf_writer.h"

namespace tandem {
namespace {

constexpr int64_t kDistinctRows = 48;

V4Config flash_layers(const SyntheticOptions& options, int64_t vocab_size) {
  V4Config c;
  c.num_layers = options.num_layers;
  c.hidden_dim = 4096;
  c.vocab_size = vocab_size;
  c.num_heads = 64;
  c.head_dim = 512;
  c.rope_dim = 64;
  c.q_lora_rank = 1024;
  c.o_groups = 8;
  c.o_lora_rank = 1024;
  c.window = 128;
  c.indexer_heads = 64;
  c.indexer_dim = 128;
  c.index_top_k = 512;
  c.num_experts = options.num_experts;
  c.num_experts_used = 6;
  c.expert_dim = 2048;
  c.hc_streams = 4;
  for (int64_t i = 0; i < c.num_layers; ++i) c.compress_ratios.push_back(i % 2 == 0 ? 4 : 128);
  return c;
}

/// The keys of the base that the shapes replace, by their name without the prefix.
std::map<std::string, int64_t> shape_keys(const V4Config& c) {
  return {
      {"block_count", c.num_layers},
      {"embedding_length", c.hidden_dim},
      {"attention.head_count", c.num_heads},
      {"attention.q_lora_rank", c.q_lora_rank},
      {"attention.output_lora_rank", c.o_lora_rank},
      {"attention.output_group_count", c.o_groups},
      {"attention.indexer.head_count", c.indexer_heads},
      {"attention.indexer.top_k", c.index_top_k},
      {"expert_count", c.num_experts},
      {"expert_feed_forward_length", c.expert_dim},
      {"feed_forward_length", c.expert_dim},
      {"hash_layer_count", c.num_hash_layers},
  };
}

void write_metadata(const GgufFile& base, const V4Config& c, GgufWriter& writer) {
  constexpr std::string_view kPrefix = "deepseek4.";
  const std::map<std::string, int64_t> shapes = shape_keys(c);
  for (const auto& [key, value] : base.metadata()) {
    const std::string name(
        key.starts_with(kPrefix) ? key.substr(kPrefix.size()) : std::string_view());
    if (shapes.contains(name) || name == "attention.compress_ratios" ||
        name == "swiglu_clamp_exp" || key == "general.name") {
      continue;
    }
    writer.set_value(key, value);
  }
  writer.set_bool("tandem.synthetic", true);
  writer.set_string("general.name", "Synthetic layers of V4 Flash's shapes");
  for (const auto& [name, value] : shapes) {
    writer.set_u32(str_cat(kPrefix, name), static_cast<uint32_t>(value));
  }
  const std::vector<int32_t> ratios(c.compress_ratios.begin(), c.compress_ratios.end());
  writer.set_i32_array(str_cat(kPrefix, "attention.compress_ratios"), ratios);
  const std::vector<float> limits(static_cast<size_t>(c.num_layers), 10.0f);
  writer.set_f32_array(str_cat(kPrefix, "swiglu_clamp_exp"), limits);
}

DType choose_type(const TensorSpec& spec, const SyntheticOptions& options) {
  if (spec.name.ends_with("down_exps.weight")) return options.down;
  if (spec.name.ends_with("_exps.weight")) return options.gate_up;
  return spec.dtypes.front();
}

/// kDistinctRows random rows, over and over; norms and scales are 1.
GgufWriter::Payload make_payload(
    const TensorSpec& spec, DType dtype, const std::vector<uint64_t>& dims, uint64_t seed) {
  return [=, name = spec.name](const GgufWriter::Sink& sink) -> Status {
    const auto cols = static_cast<int64_t>(dims[0]);
    int64_t num_rows = 1;
    for (size_t i = 1; i < dims.size(); ++i) num_rows *= static_cast<int64_t>(dims[i]);
    const bool is_ones = name.find("norm") != std::string::npos || name.ends_with("scale.weight");
    const int64_t distinct = std::min(num_rows, kDistinctRows);
    const int64_t bytes = row_bytes(dtype, cols);
    std::vector<std::byte> rows(static_cast<size_t>(distinct * bytes));
    std::vector<float> values(static_cast<size_t>(cols));
    Rng rng(seed);
    const float size = 1.7f / std::sqrt(static_cast<float>(cols));
    for (int64_t r = 0; r < distinct; ++r) {
      for (float& v : values) v = is_ones ? 1.0f : size * (2.0f * rng.uniform() - 1.0f);
      quantize_row(dtype, values.data(), cols, rows.data() + r * bytes);
    }
    for (int64_t r = 0; r < num_rows; r += distinct) {
      const auto count = static_cast<size_t>(std::min(distinct, num_rows - r) * bytes);
      TANDEM_TRY(sink({rows.data(), count}));
    }
    return {};
  };
}

}  // namespace

Status write_synthetic_v4(
    const GgufFile& base, const SyntheticOptions& options, const std::string& path) {
  TANDEM_REQUIRE(options.num_layers >= 1 && options.num_layers <= 43, "1 to 43 layers");
  TANDEM_REQUIRE(options.num_experts >= 6 && options.num_experts <= 256, "6 to 256 experts");
  TANDEM_TRY_ASSIGN(const int64_t vocab_size, base.get_i64("deepseek4.vocab_size"));
  const V4Config config = flash_layers(options, vocab_size);
  GgufWriter writer;
  write_metadata(base, config, writer);
  uint64_t seed = options.seed;
  for (const TensorSpec& spec : v4_tensor_plan(config)) {
    const DType dtype = choose_type(spec, options);
    const std::vector<uint64_t> dims(spec.dims.begin(), spec.dims.end());
    writer.add_tensor(spec.name, dtype, dims, make_payload(spec, dtype, dims, ++seed));
  }
  return writer.write(path);
}

}  // namespace tandem
