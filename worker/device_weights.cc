#include "worker/device_weights.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kUploadBytes = int64_t{64} << 20;

bool is_needed(const TensorSpec& spec, const LayerRange& range) {
  switch (spec.use) {
    case TensorUse::kIgnored: return false;
    case TensorUse::kEmbedding: return range.embeds;
    case TensorUse::kHead: return range.emits_logits;
    case TensorUse::kLayer: return spec.layer >= range.begin && spec.layer < range.end;
  }
  TANDEM_UNREACHABLE();
}

int64_t dim(const TensorSpec& spec, size_t idx) {
  return idx < spec.dims.size() ? spec.dims[idx] : 1;
}

struct Placed {
  size_t plan_idx;
  DType dtype;
  int64_t offset;
  int64_t bytes;
};

// The tensors of one layer, or of none, in one piece of memory.
struct Arena {
  int layer;
  int64_t bytes;
  std::vector<Placed> tensors;
};

std::vector<Arena> place(
    const TensorPlan& plan, const LayerRange& range, const WeightSource& source) {
  std::vector<Arena> arenas;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (!is_needed(plan[i], range)) continue;
    const std::optional<DType> dtype = source.dtype(i);
    if (!dtype.has_value()) continue;
    if (arenas.empty() || arenas.back().layer != plan[i].layer) {
      arenas.push_back({plan[i].layer, 0, {}});
    }
    const int64_t bytes =
        cuda::device_row_bytes(*dtype, dim(plan[i], 0)) * dim(plan[i], 1) * dim(plan[i], 2);
    Arena& arena = arenas.back();
    arena.tensors.push_back({i, *dtype, arena.bytes, bytes});
    arena.bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return arenas;
}

}  // namespace

Result<DeviceWeights> DeviceWeights::load(
    const TensorPlan& plan, const LayerRange& range, WeightSource& source, Allocator& allocator,
    const LoadProgress& progress) {
  const std::vector<Arena> arenas = place(plan, range, source);
  DeviceWeights weights;
  weights.table_ = WeightTable(plan.size());
  int64_t total = 0;
  for (const Arena& arena : arenas) total += arena.bytes;
  for (const Arena& arena : arenas) {
    auto memory = allocator.allocate(static_cast<size_t>(arena.bytes));
    if (memory == nullptr) {
      return Status(
          StatusCode::kResourceExhausted,
          str_cat(
              "the weights take ", total, " bytes of device memory and there is room for ",
              weights.bytes_, "; load fewer layers, or free the device"));
    }
    weights.bytes_ += arena.bytes;
    for (const Placed& tensor : arena.tensors) {
      const TensorSpec& spec = plan[tensor.plan_idx];
      const WeightView first = cuda::device_weight(
          memory->data() + tensor.offset, tensor.dtype, dim(spec, 1), dim(spec, 0));
      const ExpertWeightView view = {first, dim(spec, 2), first.rows * first.row_bytes};
      TANDEM_TRY(source.fill(tensor.plan_idx, view));
      weights.table_.set(static_cast<TensorId>(tensor.plan_idx), view);
    }
    weights.memory_.push_back(std::move(memory));
    if (progress) progress(weights.bytes_, total);
  }
  TANDEM_TRY(source.finish());
  return weights;
}

Result<std::unique_ptr<FileWeightSource>> FileWeightSource::create(
    const TensorPlan& plan, const TensorTable& tensors) {
  TANDEM_TRY_ASSIGN(cuda::WeightUploader uploader, cuda::WeightUploader::create(kUploadBytes));
  return std::unique_ptr<FileWeightSource>(
      new FileWeightSource(plan, tensors, std::move(uploader)));
}

std::optional<DType> FileWeightSource::dtype(size_t plan_idx) const {
  const TensorInfo* tensor = tensors_.find(plan_idx);
  if (tensor == nullptr) return std::nullopt;
  return tensor->dtype;
}

Status FileWeightSource::fill(size_t plan_idx, const ExpertWeightView& to) {
  const TensorInfo* tensor = tensors_.find(plan_idx);
  const ExpertWeightView from = weight_view(tensor->data, tensor->dtype, plan_[plan_idx].dims);
  for (int64_t e = 0; e < from.experts; ++e) {
    TANDEM_TRY(uploader_.upload(from.expert(e), to.expert(e)));
  }
  return {};
}

}  // namespace tandem
