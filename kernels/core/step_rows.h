#pragma once

#include <cstdint>

namespace tandem {

/// Consecutive rows of one bank at consecutive positions.
struct Segment {
  int32_t bank = 0;
  int32_t first_row = 0;
  int32_t num_rows = 0;
  int32_t first_pos = 0;
};

/// The rows of one step, as arrays in the memory of the Exec's device. A bank appears in one
/// segment at most. Position p of a segment's bank is row first_row + (p - first_pos) of this step
/// if p >= first_pos, and is in the bank's slabs otherwise.
struct StepRows {
  int64_t num_rows = 0;
  const int32_t* token = nullptr;    // [num_rows]
  const int32_t* pos = nullptr;      // [num_rows]
  const int32_t* segment = nullptr;  // [num_rows]: index into segments
  int64_t num_segments = 0;
  const Segment* segments = nullptr;       // [num_segments]
  const Segment* host_segments = nullptr;  // the same in host memory
  int64_t num_logits = 0;
  const int32_t* logit_rows = nullptr;  // [num_logits]: rows whose logits are wanted, ascending
};

}  // namespace tandem
