#pragma once

#include "model/families/deepseek_v4/config.h"
#include "model/spec/program.h"
#include "model/spec/state_plan.h"

namespace tandem {

/// The slabs of one layer as indices into the StatePlan of its stage; kNone where it has none.
struct V4LayerSlabs {
  SlabId window_rows = kNone;
  SlabId compress_history = kNone;
  SlabId compressed_rows = kNone;
  SlabId index_history = kNone;
  SlabId index_rows = kNone;
};

struct V4State {
  StatePlan plan;
  std::vector<V4LayerSlabs> layers;  // [range.end - range.begin]
};

/// Rows are stored as `dtype`; compressor histories are float32, since their projections are pooled
/// later. Source: specification section 6.1.
V4State v4_state(const V4Config& config, const LayerRange& range, DType dtype);

}  // namespace tandem
