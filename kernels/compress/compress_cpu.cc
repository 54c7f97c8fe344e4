#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/compress/compress_impl.h"
#include "kernels/core/slab_rows.h"
#include "kernels/linear/reference_linear.h"
#include "kernels/math/reference_math.h"
#include "model/formats/dequantize.h"

namespace tandem::detail {
namespace {

/// u and g of one token as the pooled row sees them: [row_dim] each.
struct Slot {
  const float* u = nullptr;
  const float* g = nullptr;
};

void add_ape(const Exec& exec, const CompressArgs& args, int64_t width) {
  const Scratch::Frame frame(*exec.scratch);
  float* ape = exec.scratch->take<float>(args.ratio * width);
  for (int64_t r = 0; r < args.ratio; ++r) {
    dequantize_row(args.ape.dtype, args.ape.row(r), width, ape + r * width);
  }
  for (int64_t t = 0; t < args.step.num_rows; ++t) {
    float* g = args.projected.row(t) + width;
    const float* row = ape + args.step.pos[t] % args.ratio * width;
    for (int64_t i = 0; i < width; ++i) g[i] += row[i];
  }
}

/// The slots of the window that ends at row t, oldest first; earlier steps' rows are read into
/// `older`.
int64_t gather_slots(
    const CompressArgs& args, int64_t t, float* older, std::array<Slot, kCompressRatioMax>& slots) {
  const int64_t width = compress_width(args.ratio, args.row_dim);
  const bool overlaps = width > args.row_dim;
  const int64_t pos = args.step.pos[t];
  const Segment& segment = args.step.segments[args.step.segment[t]];
  int64_t num_slots = 0;
  for (int64_t back = compress_span(args.ratio) - 1; back >= 0; --back) {
    const int64_t p = pos - back;
    if (p < 0) continue;
    const float* row = nullptr;
    if (p >= segment.first_pos) {
      row = args.projected.row(segment.first_row + (p - segment.first_pos));
    } else {
      load_slab_row(args.history, segment.bank, p % args.history.capacity_rows, older);
      row = older;
      older += 2 * width;
    }
    const int64_t half = overlaps && back < args.ratio ? args.row_dim : 0;
    slots[num_slots++] = {row + half, row + width + half};
  }
  return num_slots;
}

void pool_row(const CompressArgs& args, int64_t t, float* older, float* pooled) {
  std::array<Slot, kCompressRatioMax> slots;
  const int64_t num_slots = gather_slots(args, t, older, slots);
  for (int64_t i = 0; i < args.row_dim; ++i) {
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t r = 0; r < num_slots; ++r) largest = std::max(largest, slots[r].g[i]);
    float sum = 0;
    float weighted = 0;
    for (int64_t r = 0; r < num_slots; ++r) {
      const float weight = std::exp(slots[r].g[i] - largest);
      sum += weight;
      weighted += weight * slots[r].u[i];
    }
    pooled[i] = weighted / sum;
  }

  const int64_t row_idx = args.step.pos[t] / args.ratio;
  reference::rms_norm(pooled, args.norm, args.rms_eps, pooled);
  reference::rotate_tail(
      pooled, args.row_dim, args.rotary, row_idx * args.ratio, /*inverse=*/false);
  if (args.rounding == RowRounding::kFp8) {
    reference::round_fp8_groups(pooled, args.row_dim - args.rotary.dim);
  } else if (args.rounding == RowRounding::kHadamardFp4) {
    reference::hadamard(pooled, args.row_dim);
    reference::round_fp4_groups(pooled, args.row_dim);
  }
  store_slab_row(args.rows, args.step.segments[args.step.segment[t]].bank, row_idx, pooled);
}

}  // namespace

Status compress_cpu(const Exec& exec, const CompressArgs& args) {
  const int64_t n = args.step.num_rows;
  const int64_t width = compress_width(args.ratio, args.row_dim);
  const int64_t stride = args.projected.stride;
  reference::linear(exec, args.x, args.kv, {args.projected.data, n, width, stride});
  reference::linear(exec, args.x, args.gate, {args.projected.data + width, n, width, stride});
  add_ape(exec, args, width);

  const Scratch::Frame frame(*exec.scratch);
  const int64_t older_size = compress_span(args.ratio) * 2 * width;
  float* temporary =
      exec.scratch->take<float>(exec.pool->num_threads() * (older_size + args.row_dim));
  exec.pool->run([&](int thread_idx) {
    float* older = temporary + thread_idx * (older_size + args.row_dim);
    for (int64_t t = thread_idx; t < n; t += exec.pool->num_threads()) {
      if ((args.step.pos[t] + 1) % args.ratio == 0) pool_row(args, t, older, older + older_size);
    }
  });
  return {};
}

}  // namespace tandem::detail
