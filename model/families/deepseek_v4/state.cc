#include "model/families/deepseek_v4/state.h"

namespace tandem {
namespace {

/// Adds the slabs of one compressor: the projections of the tokens that a pooled row still needs,
/// and the pooled rows.
void add_compressor(
    StatePlan& plan, const std::string& prefix, int32_t layer, int64_t ratio, int64_t row_dim,
    DType dtype, SlabId& history, SlabId& rows) {
  const bool overlaps = ratio == 4;
  const int64_t width = (overlaps ? 2 : 1) * row_dim;
  history = static_cast<SlabId>(plan.slabs.size());
  plan.slabs.push_back(
      {prefix + "_history", layer, SlabKind::kRing, DType::kF32, 2 * width, 1,
       (overlaps ? 2 : 1) * ratio});
  rows = static_cast<SlabId>(plan.slabs.size());
  plan.slabs.push_back({prefix + "_rows", layer, SlabKind::kRows, dtype, row_dim, ratio, 0});
}

}  // namespace

V4State v4_state(const V4Config& config, const LayerRange& range, DType dtype) {
  V4State out;
  for (int32_t layer = range.begin; layer < range.end; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer);
    const int64_t ratio = config.compress_ratios[layer];
    V4LayerSlabs slabs;
    slabs.window_rows = static_cast<SlabId>(out.plan.slabs.size());
    out.plan.slabs.push_back(
        {prefix + ".window_rows", layer, SlabKind::kRing, dtype, config.head_dim, 1,
         config.window});
    if (ratio != 0) {
      add_compressor(
          out.plan, prefix + ".compressed", layer, ratio, config.head_dim, dtype,
          slabs.compress_history, slabs.compressed_rows);
    }
    if (ratio == 4) {
      add_compressor(
          out.plan, prefix + ".index", layer, ratio, config.indexer_dim, dtype, slabs.index_history,
          slabs.index_rows);
    }
    out.layers.push_back(slabs);
  }
  return out;
}

}  // namespace tandem
