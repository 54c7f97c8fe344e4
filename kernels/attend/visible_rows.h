#pragma once

#include <cstdint>

#include "kernels/attend/attend.h"

namespace tandem::detail {

/// Where the rows that query t sees lie. Window positions first ... pos, then `num_compressed`
/// rows.
struct VisibleRows {
  int64_t bank = 0;
  int64_t pos = 0;
  int64_t window_begin = 0;            // first visible position
  int64_t step_begin = 0;              // positions from here on are rows of this step
  int64_t step_row = 0;                // the row of position step_begin
  int64_t num_compressed = 0;          // selected or all visible
  const int32_t* selection = nullptr;  // or null: compressed rows 0, 1, ...
};

inline VisibleRows visible_rows(const AttendArgs& args, int64_t t) {
  const Segment& segment = args.step.segments[args.step.segment[t]];
  VisibleRows out;
  out.bank = segment.bank;
  out.pos = args.step.pos[t];
  out.window_begin = out.pos + 1 > args.window ? out.pos + 1 - args.window : 0;
  out.step_begin = segment.first_pos;
  out.step_row = segment.first_row;
  if (args.compressed_rows.data == nullptr) return out;
  const int64_t count = (out.pos + 1) / args.ratio;
  out.num_compressed = count;
  if (args.selection.data != nullptr) {
    out.selection = args.selection.row(t);
    const int64_t limit = count < args.selection.cols ? count : args.selection.cols;
    out.num_compressed = 0;
    while (out.num_compressed < limit && out.selection[out.num_compressed] >= 0) {
      ++out.num_compressed;
    }
  }
  return out;
}

}  // namespace tandem::detail
