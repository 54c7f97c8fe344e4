#include <algorithm>

#include "kernels/core/slab_rows.h"
#include "kernels/ring_append/ring_append_impl.h"

namespace tandem::detail {

Status ring_append_cpu(const Exec&, const RingAppendArgs& args) {
  const int64_t capacity = args.ring.capacity_rows;
  for (int64_t i = 0; i < args.step.num_segments; ++i) {
    const Segment& segment = args.step.segments[i];
    const int64_t num_kept = std::min<int64_t>(segment.num_rows, capacity);
    for (int64_t r = segment.num_rows - num_kept; r < segment.num_rows; ++r) {
      const int64_t pos = segment.first_pos + r;
      store_slab_row(
          args.ring, segment.bank, pos % capacity, args.value.row(segment.first_row + r));
    }
  }
  return {};
}

Status ring_append_fast(const Exec& exec, const RingAppendArgs& args) {
  return ring_append_cpu(exec, args);
}

}  // namespace tandem::detail
