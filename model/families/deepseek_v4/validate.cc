#include "model/families/deepseek_v4/validate.h"

#include <cmath>
#include <iomanip>
#include <optional>
#include <string>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "model/families/deepseek_v4/rules.h"
#include "model/gguf/check_vocabulary.h"

namespace tandem {
namespace {

constexpr const char* kPrefix = "deepseek4.";
constexpr double kRelativeTolerance = 1e-6;

bool nearly_equal(double a, double b) {
  return std::fabs(a - b) <= kRelativeTolerance * std::fabs(b);
}

class Validator {
 public:
  explicit Validator(const GgufFile& file) : file_(file) {}

  V4Config run() {
    check_architecture();
    read_layers();
    choose_variant();
    for (const v4::IntRule& rule : v4::int_rules()) read_int(rule);
    for (const v4::FloatRule& rule : v4::float_rules()) read_float(rule);
    read_ratios();
    config_.swiglu_limit = read_limit("swiglu_clamp_exp", std::nullopt);
    config_.shared_swiglu_limit = read_limit("swiglu_clamp_shexp", config_.swiglu_limit);
    check_flags();
    check_relations();
    check_tokens();
    return std::move(config_);
  }

  std::vector<Issue> take_issues() { return std::move(issues_); }

 private:
  template <class... Args>
  void report(const char* code, const std::string& key, const Args&... detail) {
    issues_.push_back({code, key, str_cat(detail...)});
  }

  static std::string full(const char* key) { return std::string(kPrefix) + key; }

  bool is_small() const { return config_.variant == V4Variant::kSmall; }
  template <class Rule>
  auto published(const Rule& rule) const {
    return config_.variant == V4Variant::kPro ? rule.pro : rule.flash;
  }

  void warn_recovered(const std::string& key, double value) const {
    log_warning("model", "key_recovered", {{"file", file_.name()}, {"key", key}, {"value", value}});
  }

  const TensorInfo* layer_tensor(int64_t layer, std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (const auto* tensor = file_.find_tensor(str_cat("blk.", layer, ".", name))) return tensor;
    }
    return nullptr;
  }

  // The tensor of the first layer that has it: a file may hold later layers only.
  const TensorInfo* any_layer_tensor(std::initializer_list<const char*> names) const {
    for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
      if (const auto* tensor = layer_tensor(layer, names)) return tensor;
    }
    return nullptr;
  }

  void check_architecture() {
    const std::string key = "general.architecture";
    const GgufValue* value = file_.find_value(key);
    if (value == nullptr) {
      report("missing-key", key, "expected deepseek4");
    } else if (value->type != GgufType::kString) {
      report("bad-type", key, "expected a string, found ", value->type_text());
    } else if (value->text != "deepseek4") {
      report("mismatch", key, "expected deepseek4, found ", printable(value->text));
    }
    // Later models share the architecture name and say so here.
    if (file_.has(full("variant"))) {
      report("mismatch", full("variant"), "the file is a variant of V4 that is not V4 itself");
    }
  }

  // An integer of any width, or nothing with an issue; nothing without one if the key is absent.
  std::optional<int64_t> integer(const std::string& key) {
    const GgufValue* value = file_.find_value(key);
    if (value == nullptr) return std::nullopt;
    if (!gguf_is_integer(value->type)) {
      report("bad-type", key, "expected an integer, found ", value->type_text());
      return std::nullopt;
    }
    const auto result = value->as_i64();
    if (!result || *result < 0) report("out-of-range", key, "negative or beyond 63 bits");
    return result && *result >= 0 ? result : std::nullopt;
  }

  void read_layers() {
    const std::string key = full("block_count");
    const std::string next_key = full("nextn_predict_layers");
    const auto blocks = integer(key);
    int64_t num_next = integer(next_key).value_or(0);
    if (!blocks) {
      if (!file_.has(key)) report("missing-key", key, "expected an integer");
      return;
    }
    if (*blocks < 1 || *blocks > kLayersMax) {
      report("out-of-range", key, "expected 1 to ", kLayersMax, ", found ", *blocks);
      return;
    }
    if (num_next >= *blocks) {
      report(
          "out-of-range", next_key, "expected less than the ", *blocks, " blocks, found ",
          num_next);
      num_next = 0;
    }
    count_layers(*blocks, num_next);
  }

  // block_count includes draft blocks in the files that have them. The tensors decide: such a block
  // has a projection that no layer has, and a file without the block is a file without a draft.
  void count_layers(int64_t num_blocks, int64_t num_next) {
    config_.num_layers = num_blocks - num_next;
    for (int64_t i = config_.num_layers; i < num_blocks; ++i) {
      if (layer_tensor(i, {"nextn.eh_proj.weight"}) != nullptr) {
        ++config_.num_mtp_layers;
      } else if (layer_tensor(i, {"attn_norm.weight"}) != nullptr) {
        config_.num_layers = num_blocks;
        return;
      }
    }
    if (config_.num_mtp_layers < num_next) {
      log_warning(
          "model", "no_mtp_tensors",
          {{"file", file_.name()}, {"layers", config_.num_layers}, {"speculation", "off"}});
    }
  }

  void choose_variant() {
    const GgufValue* value = file_.find_value(full("embedding_length"));
    const bool readable = value != nullptr && gguf_is_integer(value->type);
    const int64_t hidden_dim = readable ? value->as_i64().value_or(0) : 0;
    // A file of made-up layers says so: it has the published width but not the other numbers.
    const Result<bool> synthetic = file_.get_bool("tandem.synthetic");
    if (!synthetic.ok() || !*synthetic) {
      if (hidden_dim == v4::kFlashHiddenDim) config_.variant = V4Variant::kFlash;
      if (hidden_dim == v4::kProHiddenDim) config_.variant = V4Variant::kPro;
    }
    if (config_.num_layers == 0) return;
    const std::string key = full("block_count");
    const int64_t layers = config_.variant == V4Variant::kFlash ? v4::kFlashLayers : v4::kProLayers;
    if (is_small()) {
      if (config_.num_layers > layers) {
        report("out-of-range", key, "expected at most ", layers, ", found ", config_.num_layers);
      }
    } else if (config_.num_layers != layers) {
      report(
          "mismatch", key, v4_variant_name(config_.variant), " has ", layers, " layers, found ",
          config_.num_layers);
    }
  }

  std::optional<int64_t> recover(v4::Source source) const {
    const TensorInfo* tensor = nullptr;
    const auto first_dim = [&] { return static_cast<int64_t>(tensor->dims[0]); };
    switch (source) {
      case v4::Source::kOutputGroups:
        tensor = any_layer_tensor({"attn_output_a.weight"});
        if (tensor == nullptr) return std::nullopt;
        return config_.num_heads * config_.head_dim / first_dim();
      case v4::Source::kOutputRank:
        tensor = any_layer_tensor({"attn_output_b.weight"});
        if (tensor == nullptr || config_.o_groups < 1) return std::nullopt;
        return first_dim() / config_.o_groups;
      case v4::Source::kStreams:
        tensor = any_layer_tensor({"hc_attn_fn.weight", "hc_attn_fn"});
        if (tensor == nullptr || config_.hidden_dim < 1) return std::nullopt;
        return first_dim() / config_.hidden_dim;
      case v4::Source::kHashLayers: {
        if (layer_tensor(0, {"attn_norm.weight"}) == nullptr) return std::nullopt;
        int64_t count = 0;
        while (layer_tensor(count, {"ffn_gate_tid2eid.weight", "ffn_gate_tid2eid"})) ++count;
        return count;
      }
      case v4::Source::kNone: return std::nullopt;
    }
    TANDEM_UNREACHABLE();
  }

  void read_int(const v4::IntRule& rule) {
    const std::string key = full(rule.key);
    std::optional<int64_t> value = integer(key);
    if (!value && file_.has(key)) return;
    if (!value) {
      if (rule.absent == v4::Absent::kIssue)
        return report("missing-key", key, "expected an integer");
      value = published(rule);
      if (rule.absent == v4::Absent::kRecovered) {
        value = recover(rule.source).value_or(*value);
        warn_recovered(key, static_cast<double>(*value));
      }
    }
    if (rule.field == &V4Config::context_length || is_small()) {
      const bool in_range = *value >= rule.small_min && *value <= rule.small_max;
      if (!in_range || *value % rule.small_multiple != 0) {
        const std::string multiple =
            rule.small_multiple == 1 ? "" : str_cat(", a multiple of ", rule.small_multiple);
        return report(
            "out-of-range", key, "expected ", rule.small_min, " to ", rule.small_max, multiple,
            ", found ", *value);
      }
    } else if (*value != published(rule)) {
      return report(
          "mismatch", key, v4_variant_name(config_.variant), " has ", published(rule), ", found ",
          *value);
    }
    if (rule.field != nullptr) config_.*rule.field = *value;
  }

  void read_float(const v4::FloatRule& rule) {
    const std::string key = full(rule.key);
    const GgufValue* found = file_.find_value(key);
    double value = published(rule);
    if (found != nullptr) {
      const bool is_number = gguf_is_float(found->type) || gguf_is_integer(found->type);
      if (!is_number)
        return report("bad-type", key, "expected a number, found ", found->type_text());
      value = *found->as_f64();
    } else if (rule.absent == v4::Absent::kIssue) {
      return report("missing-key", key, "expected a number");
    } else if (rule.absent == v4::Absent::kRecovered) {
      warn_recovered(key, value);
    }
    check_float(rule, key, value);
  }

  void check_float(const v4::FloatRule& rule, const std::string& key, double value) {
    if (is_small() || rule.is_free) {
      if (!(value >= rule.min && value <= rule.max)) {
        return report(
            "out-of-range", key, "expected ", rule.min, " to ", rule.max, ", found ", value);
      }
    } else if (!nearly_equal(value, published(rule))) {
      return report(
          "mismatch", key, v4_variant_name(config_.variant), " has ", published(rule), ", found ",
          value);
    }
    if (rule.is_free && !nearly_equal(value, published(rule))) {
      log_warning(
          "model", "unusual_value",
          {{"file", file_.name()}, {"key", key}, {"value", value}, {"usual", published(rule)}});
    }
    config_.*rule.field = static_cast<float>(value);
  }

  // The ratio of a layer by its tensors: the position table has one row for each token of a window.
  std::optional<int64_t> ratio_of_layer(int64_t layer) const {
    if (!is_small()) return v4::published_ratio(config_.variant, layer);
    if (layer_tensor(layer, {"attn_norm.weight"}) == nullptr) return std::nullopt;
    const TensorInfo* ape = layer_tensor(
        layer, {"attn_compressor_ape.weight", "attn_compress_ape.weight", "attn_compress_ape"});
    if (ape == nullptr) return 0;
    return ape->dims.size() < 2 ? 1 : static_cast<int64_t>(ape->dims[1]);
  }

  void read_ratios() {
    const std::string key = full("attention.compress_ratios");
    const GgufValue* value = file_.find_value(key);
    if (value != nullptr &&
        (value->type != GgufType::kArray || !gguf_is_integer(value->item_type))) {
      return report("bad-type", key, "expected an array of integers, found ", value->type_text());
    }
    const auto needed = static_cast<uint64_t>(config_.num_layers);
    if (value != nullptr && value->num_items < needed) {
      return report("mismatch", key, "expected ", needed, " entries, found ", value->num_items);
    }
    if (value == nullptr) {
      log_warning("model", "key_recovered", {{"file", file_.name()}, {"key", key}});
    }
    for (uint64_t i = 0; i < needed; ++i) {
      const auto layer = static_cast<int64_t>(i);
      const auto ratio = value != nullptr ? value->as_i64(i) : ratio_of_layer(layer);
      if (!ratio) return report("missing-key", key, "cannot be recovered for layer ", i);
      const bool known = *ratio == 0 || *ratio == 4 || *ratio == 128;
      if (!known || (!is_small() && *ratio != v4::published_ratio(config_.variant, layer))) {
        return report("mismatch", key, "layer ", i, " has the ratio ", *ratio);
      }
      config_.compress_ratios.push_back(*ratio);
    }
  }

  // One limit for all layers, written as a number or once for each layer.
  float read_limit(const char* short_key, std::optional<float> if_absent) {
    const std::string key = full(short_key);
    const GgufValue* value = file_.find_value(key);
    if (value == nullptr) {
      if (!if_absent) report("missing-key", key, "expected a number or an array of numbers");
      return if_absent.value_or(0.0f);
    }
    const bool is_array = value->type == GgufType::kArray;
    const GgufType type = is_array ? value->item_type : value->type;
    if (!gguf_is_float(type) && !gguf_is_integer(type)) {
      report(
          "bad-type", key, "expected a number or an array of numbers, found ", value->type_text());
      return 0.0f;
    }
    const uint64_t needed = is_array ? static_cast<uint64_t>(config_.num_layers) : 1;
    if (is_array && (value->num_items < needed || value->num_items == 0)) {
      report("mismatch", key, "expected ", needed, " entries, found ", value->num_items);
      return 0.0f;
    }
    const double first = *value->as_f64(0);
    for (uint64_t i = 0; i < needed; ++i) {
      const double limit = *value->as_f64(i);
      const bool published_value = nearly_equal(limit, v4::kSwigluLimit);
      const bool good = is_small() ? limit > 0.0 && limit <= 1e6 : published_value;
      if (!good || !nearly_equal(limit, first)) {
        report(
            "mismatch", key, "layer ", i, " has the limit ", limit,
            ", expected one positive value");
        return 0.0f;
      }
    }
    return static_cast<float>(first);
  }

  void check_flags() {
    const std::string norm_key = full("expert_weights_norm");
    const GgufValue* norm = file_.find_value(norm_key);
    if (norm == nullptr) {
      report("missing-key", norm_key, "expected true");
    } else if (norm->type != GgufType::kBool) {
      report("bad-type", norm_key, "expected a boolean, found ", norm->type_text());
    } else if (!*norm->as_bool()) {
      report("mismatch", norm_key, "expected true, found false");
    }
    check_word(full("rope.scaling.type"), {"yarn"});
    const auto rounding = check_word("tandem.fake_quant", {"official", "none"});
    config_.official_rounding = rounding != "none";
  }

  // An optional string that must be one of `words`; empty if it is absent or wrong.
  std::string_view check_word(
      const std::string& key, std::initializer_list<std::string_view> words) {
    const GgufValue* value = file_.find_value(key);
    if (value == nullptr) return {};
    if (value->type != GgufType::kString) {
      report("bad-type", key, "expected a string, found ", value->type_text());
      return {};
    }
    std::string expected;
    for (const std::string_view word : words) {
      if (value->text == word) return word;
      expected += str_cat(expected.empty() ? "" : " or ", word);
    }
    report("mismatch", key, "expected ", expected, ", found ", printable(value->text));
    return {};
  }

  // Values that are good alone and wrong together. Fields that already have an issue are zero.
  void check_relations() {
    const V4Config& c = config_;
    if (c.o_groups > 0 && c.num_heads % c.o_groups != 0) {
      report(
          "mismatch", full("attention.output_group_count"), c.num_heads,
          " heads cannot be split into ", c.o_groups, " groups");
    }
    if (c.num_experts > 0 && c.num_experts_used > c.num_experts) {
      report(
          "mismatch", full("expert_used_count"), c.num_experts_used, " of ", c.num_experts,
          " experts");
    }
    if (c.num_layers > 0 && c.num_hash_layers > c.num_layers) {
      report(
          "mismatch", full("hash_layer_count"), c.num_hash_layers, " of ", c.num_layers, " layers");
    }
    if (c.yarn_beta_fast > 0 && c.yarn_beta_slow >= c.yarn_beta_fast) {
      report(
          "mismatch", full("rope.scaling.yarn_beta_slow"), c.yarn_beta_slow,
          " is not below yarn_beta_fast ", c.yarn_beta_fast);
    }
  }

  void check_tokens() {
    constexpr const char* kTokens = "tokenizer.ggml.tokens";
    if (config_.vocab_size == 0 || !file_.has(kTokens)) return;
    const Status status = check_vocabulary(file_, static_cast<uint64_t>(config_.vocab_size));
    if (status.ok()) return;
    // The message starts with the file's name, which the whole report will carry once.
    report("mismatch", "tokenizer.ggml", status.message().substr(file_.name().size() + 2));
  }

  const GgufFile& file_;
  V4Config config_;
  std::vector<Issue> issues_;
};

}  // namespace

Result<V4Config> validate_v4(const GgufFile& file, std::vector<Issue>* issues) {
  Validator validator(file);
  V4Config config = validator.run();
  const std::vector<Issue> found = validator.take_issues();
  if (issues != nullptr) issues->insert(issues->end(), found.begin(), found.end());
  TANDEM_TRY(issues_to_status(file.name(), found));
  const std::string hash =
      str_cat(std::hex, std::setfill('0'), std::setw(16), v4_config_hash(config));
  log_info("model", "v4_config", {{"variant", v4_variant_name(config.variant)}, {"hash", hash}});
  return config;
}

}  // namespace tandem
