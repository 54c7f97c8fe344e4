#include "model/families/deepseek_v4/model.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "model/families/deepseek_v4/config.h"
#include "model/families/deepseek_v4/program.h"
#include "model/families/deepseek_v4/prompt.h"
#include "model/families/deepseek_v4/state.h"
#include "model/families/deepseek_v4/tensors.h"
#include "model/families/deepseek_v4/validate.h"

namespace tandem {
namespace {

constexpr std::string_view kArchitecture = "deepseek4";

std::string hex16(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value);
  return text;
}

class V4Model final : public Model {
 public:
  V4Model(V4Config config, std::string name)
      : config_(std::move(config)), tensors_(v4_tensor_plan(config_)) {
    spec_.family = "deepseek_v4";
    spec_.name = std::move(name);
    spec_.num_layers = static_cast<int32_t>(config_.num_layers);
    spec_.hidden_dim = config_.hidden_dim;
    spec_.num_streams = config_.hc_streams;
    spec_.vocab_size = config_.vocab_size;
    spec_.context_tokens_max = config_.context_length;
    spec_.fingerprint = hex16(v4_config_hash(config_));
  }

  const ModelSpec& spec() const override { return spec_; }
  const TensorPlan& tensors() const override { return tensors_; }
  StatePlan state(const LayerRange& range, DType dtype) const override {
    return v4_state(config_, range, dtype).plan;
  }
  Result<Program> program(const LayerRange& range) const override {
    return v4_program(config_, tensors_, range);
  }
  std::unique_ptr<PromptProtocol> protocol() const override { return v4_prompt_protocol(); }

  Status check_contents(const TensorTable& tensors) const override {
    for (int64_t layer = 0; layer < config_.num_hash_layers; ++layer) {
      const std::string name = "blk." + std::to_string(layer) + ".ffn_gate_tid2eid.weight";
      const TensorInfo* tensor = tensors.find(name);
      if (tensor == nullptr) continue;
      std::vector<int32_t> experts(static_cast<size_t>(config_.num_experts_used));
      const size_t row_bytes = experts.size() * sizeof(int32_t);
      for (int64_t token = 0; token < config_.vocab_size; ++token) {
        std::memcpy(
            experts.data(), tensor->data + static_cast<size_t>(token) * row_bytes, row_bytes);
        TANDEM_TRY(check_experts(name, token, experts));
      }
    }
    return {};
  }

 private:
  /// A token's experts exist and differ: the buffers of a step are sized for that.
  Status check_experts(
      const std::string& name, int64_t token, const std::vector<int32_t>& experts) const {
    for (size_t k = 0; k < experts.size(); ++k) {
      const int32_t expert = experts[k];
      if (expert < 0 || expert >= config_.num_experts) {
        return {
            StatusCode::kDataLoss, str_cat(
                                       name, " names expert ", expert, " for token ", token,
                                       ", the model has ", config_.num_experts)};
      }
      if (std::find(experts.begin(), experts.begin() + static_cast<std::ptrdiff_t>(k), expert) !=
          experts.begin() + static_cast<std::ptrdiff_t>(k)) {
        return {
            StatusCode::kDataLoss,
            str_cat(name, " names expert ", expert, " twice for token ", token)};
      }
    }
    return {};
  }

  V4Config config_;
  TensorPlan tensors_;
  ModelSpec spec_;
};

}  // namespace

bool is_deepseek_v4(const GgufFile& file) {
  const auto architecture = file.get_string("general.architecture");
  return architecture.ok() && *architecture == kArchitecture;
}

Result<std::shared_ptr<const Model>> open_deepseek_v4(const GgufFile& file) {
  TANDEM_TRY_ASSIGN(V4Config config, validate_v4(file));
  const auto name = file.get_string("general.name");
  std::string title = name.ok() ? std::string(*name) : v4_variant_name(config.variant);
  return make_deepseek_v4(std::move(config), std::move(title));
}

std::shared_ptr<const Model> make_deepseek_v4(V4Config config, std::string name) {
  return std::make_shared<V4Model>(std::move(config), std::move(name));
}

}  // namespace tandem
