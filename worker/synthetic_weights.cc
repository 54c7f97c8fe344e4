#include "worker/synthetic_weights.h"

#include <cmath>
#include <string>

#include "kernels/cuda/device_weights.h"
#include "model/families/deepseek_v4/model.h"
#include "model/families/deepseek_v4/published.h"

namespace tandem {
namespace {

constexpr uint64_t kSeed = 0x7a6e64656d;

bool contains(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
}

}  // namespace

Result<std::unique_ptr<SyntheticWeightSource>> SyntheticWeightSource::create(
    const TensorPlan& plan, ExpertMix mix) {
  TANDEM_TRY_ASSIGN(cuda::Stream stream, cuda::Stream::create());
  return std::unique_ptr<SyntheticWeightSource>(
      new SyntheticWeightSource(plan, mix, std::move(stream)));
}

std::optional<DType> SyntheticWeightSource::dtype(size_t plan_idx) const {
  const TensorSpec& spec = plan_[plan_idx];
  if (spec.use == TensorUse::kIgnored) return std::nullopt;
  if (spec.dims.size() < 3) return spec.dtypes.front();
  switch (mix_) {
    case ExpertMix::kQ2:
      return contains(spec.name, "ffn_down_exps") ? DType::kQ2_K : DType::kIQ2_XXS;
    case ExpertMix::kQ4: return DType::kQ4_K;
    case ExpertMix::kMxfp4: return DType::kMXFP4;
  }
  TANDEM_UNREACHABLE();
}

Status SyntheticWeightSource::fill(size_t plan_idx, const ExpertWeightView& to) {
  const TensorSpec& spec = plan_[plan_idx];
  if (contains(spec.name, "ffn_gate_inp")) num_experts_ = to.first.rows;
  if (to.first.dtype == DType::kI32) return fill_token_experts(to.first);
  const uint64_t seed = kSeed + plan_idx;
  if (spec.dims.size() == 1) {
    const float mean = contains(spec.name, "norm") || contains(spec.name, "scale") ? 1.0f : 0.0f;
    return cuda::fill_random_vector(
        reinterpret_cast<float*>(const_cast<std::byte*>(to.first.data)), to.first.cols, seed, mean,
        0.1f, stream_);
  }
  // A product with a row of unit deviation has about unit deviation, and less than that where it
  // adds to the streams, layer after layer.
  const float deviation = 1.0f / std::sqrt(static_cast<float>(to.first.cols));
  WeightView all = to.first;
  all.rows *= to.experts;
  return cuda::fill_random_weight(all, seed, deviation, stream_);
}

Status SyntheticWeightSource::fill_token_experts(const WeightView& to) {
  TANDEM_REQUIRE(num_experts_ > 0, "the router comes before the experts of tokens");
  std::vector<int32_t> ids(static_cast<size_t>(to.rows * to.cols));
  for (int64_t token = 0; token < to.rows; ++token) {
    for (int64_t k = 0; k < to.cols; ++k) {
      // Distinct within a token: a stride that no number of experts divides.
      ids[static_cast<size_t>(token * to.cols + k)] =
          static_cast<int32_t>((token * 7 + k * 37) % num_experts_);
    }
  }
  TANDEM_TRY_ASSIGN(
      cuda::WeightUploader uploader,
      cuda::WeightUploader::create(static_cast<int64_t>(ids.size() * sizeof(int32_t))));
  const WeightView from = {
      reinterpret_cast<const std::byte*>(ids.data()), DType::kI32, to.rows, to.cols,
      to.cols * static_cast<int64_t>(sizeof(int32_t))};
  TANDEM_TRY(uploader.upload(from, to));
  return uploader.finish();
}

Result<SyntheticModel> make_synthetic_model(std::string_view name, int64_t num_layers) {
  const size_t dash = name.find('-');
  const std::string_view shape = name.substr(0, dash);
  const std::string_view mix = dash == std::string_view::npos ? "" : name.substr(dash + 1);
  const bool is_known =
      (shape == "flash" || shape == "pro") && (mix == "q2" || mix == "q4" || mix == "mxfp4");
  TANDEM_REQUIRE(
      is_known,
      str_cat(
          "no synthetic model ", name, "; there are flash-q2, -q4, -mxfp4, pro-q2, -q4, -mxfp4"));
  const V4Variant variant = shape == "pro" ? V4Variant::kPro : V4Variant::kFlash;
  const int64_t layers_max = v4_published_config(variant).num_layers;
  TANDEM_REQUIRE(
      num_layers >= 0 && num_layers <= layers_max,
      str_cat(name, " has ", layers_max, " layers, not ", num_layers));
  SyntheticModel out;
  out.model = make_deepseek_v4(v4_published_config(variant, num_layers), std::string(name));
  out.mix = mix == "q2" ? ExpertMix::kQ2 : (mix == "q4" ? ExpertMix::kQ4 : ExpertMix::kMxfp4);
  return out;
}

}  // namespace tandem
