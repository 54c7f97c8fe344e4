#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/formats/dtype.h"

namespace tandem {

/// How a slab's rows are addressed and what can be taken back.
enum class SlabKind {
  kRows,  // row pos / tokens_per_row, append-only: any suffix can be dropped
  kRing,  // row pos % capacity: the last `window` rows must survive, so a rewind is bounded
};

/// State of one sequence that one layer owns: rows of equal size, addressed by absolute position.
struct SlabSpec {
  std::string name;  // "blk.3.window_rows"
  int32_t layer = 0;
  SlabKind kind = SlabKind::kRows;
  DType dtype = DType::kF32;
  int64_t row_values = 0;
  int64_t tokens_per_row = 1;  // kRows
  int64_t window = 0;          // kRing: rows behind the end that the next step may read

  friend bool operator==(const SlabSpec&, const SlabSpec&) = default;
};

struct StateLimits {
  int64_t context_tokens = 0;  // > 0
  int64_t rewind_tokens = 0;   // a ring lets this many tokens be taken back; >= 0
};

struct StatePlan {
  std::vector<SlabSpec> slabs;
};

/// Rows that a slab holds under `limits`.
inline int64_t slab_capacity_rows(const SlabSpec& slab, const StateLimits& limits) {
  switch (slab.kind) {
    case SlabKind::kRows: return limits.context_tokens / slab.tokens_per_row + 1;
    case SlabKind::kRing: return slab.window + limits.rewind_tokens;
  }
  return 0;
}

inline int64_t slab_row_bytes(const SlabSpec& slab) {
  return row_bytes(slab.dtype, slab.row_values);
}

}  // namespace tandem
