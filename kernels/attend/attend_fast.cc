#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/attend/attend_impl.h"
#include "kernels/attend/visible_rows.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/rotate.h"
#include "kernels/cpu/units.h"
#include "model/formats/quantize.h"

namespace tandem::detail {
namespace {

/// One thread's temporaries.
struct Temporaries {
  const std::byte** pointers;  // [rows_max]
  float* scores;               // [heads of a unit * rows_max]
};

/// The rows that one query sees, in order, as runs of one type.
struct SeenRows {
  std::array<RowPointers, 3> runs;
  int64_t num_runs = 0;
  int64_t count = 0;
};

class RunBuilder {
 public:
  explicit RunBuilder(const std::byte** pointers) : pointers_(pointers) {}

  void add(const void* row, DType dtype) {
    if (seen_.num_runs == 0 || seen_.runs[seen_.num_runs - 1].dtype != dtype) {
      seen_.runs[seen_.num_runs++] = {pointers_ + seen_.count, 0, dtype};
    }
    pointers_[seen_.count++] = static_cast<const std::byte*>(row);
    ++seen_.runs[seen_.num_runs - 1].count;
  }
  const SeenRows& seen() const { return seen_; }

 private:
  const std::byte** pointers_;
  SeenRows seen_;
};

/// This step's rows as the window's slab will hold them.
struct StepRowBytes {
  const std::byte* data;
  int64_t row_bytes;
};

SeenRows find_rows(
    const AttendArgs& args, const StepRowBytes& own, int64_t t, const std::byte** pointers) {
  const VisibleRows visible = visible_rows(args, t);
  RunBuilder builder(pointers);
  int64_t p = visible.window_begin;
  for (; p < std::min(visible.step_begin, visible.pos + 1); ++p) {
    builder.add(
        args.window_rows.row(visible.bank, p % args.window_rows.capacity_rows),
        args.window_rows.dtype);
  }
  for (; p <= visible.pos; ++p) {
    const int64_t row = visible.step_row + (p - visible.step_begin);
    builder.add(own.data + row * own.row_bytes, args.window_rows.dtype);
  }
  for (int64_t j = 0; j < visible.num_compressed; ++j) {
    const int64_t idx = visible.selection != nullptr ? visible.selection[j] : j;
    builder.add(args.compressed_rows.row(visible.bank, idx), args.compressed_rows.dtype);
  }
  return builder.seen();
}

/// Heads whose scores are held at once.
constexpr int64_t kAttendHeadsAtOnce = 32;

void attend_heads(
    const CpuKernels& kernels, const AttendArgs& args, const StepRowBytes& own, int64_t t,
    int64_t first_head, int64_t num_heads, const Temporaries& tmp) {
  const int64_t head_dim = args.head_dim;
  const SeenRows seen = find_rows(args, own, t, tmp.pointers);
  const float* q = args.q.row(t) + first_head * head_dim;
  float* out = args.out.row(t) + first_head * head_dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));

  int64_t done = 0;
  for (int64_t i = 0; i < seen.num_runs; ++i) {
    kernels.f32.attend_scores(
        q, num_heads, head_dim, seen.runs[i], scale, tmp.scores + done, seen.count);
    done += seen.runs[i].count;
  }
  std::array<float, kAttendHeadsAtOnce> inverse_sums;
  for (int64_t h = 0; h < num_heads; ++h) {
    inverse_sums[h] = kernels.f32.softmax(
        tmp.scores + h * seen.count, seen.count, args.sinks.data[first_head + h]);
  }
  std::fill_n(out, num_heads * head_dim, 0.0f);
  done = 0;
  for (int64_t i = 0; i < seen.num_runs; ++i) {
    kernels.f32.attend_mix(tmp.scores + done, seen.count, num_heads, head_dim, seen.runs[i], out);
    done += seen.runs[i].count;
  }
  const cpu::RotaryAngles angles(kernels, args.rotary, args.step.pos[t]);
  for (int64_t h = 0; h < num_heads; ++h) {
    kernels.f32.scale(out + h * head_dim, head_dim, inverse_sums[h]);
    angles.rotate_tail(out + h * head_dim, head_dim, /*inverse=*/true);
  }
}

StepRowBytes own_rows(const Exec& exec, const AttendArgs& args) {
  const DType dtype = args.window_rows.dtype;
  if (dtype == DType::kF32) {
    return {
        reinterpret_cast<const std::byte*>(args.kv_row.data),
        args.kv_row.stride * static_cast<int64_t>(sizeof(float))};
  }
  const int64_t bytes = row_bytes(dtype, args.head_dim);
  std::byte* data = exec.scratch->take<std::byte>(args.kv_row.rows * bytes);
  exec.pool->for_range(args.kv_row.rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      quantize_row(dtype, args.kv_row.row(t), args.head_dim, data + t * bytes);
    }
  });
  return {data, bytes};
}

}  // namespace

Status attend_fast(const Exec& exec, const AttendArgs& args) {
  if (args.head_dim % 16 != 0) return attend_cpu(exec, args);
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const int64_t n = args.step.num_rows;
  const int num_threads = exec.pool->num_threads();
  int64_t rows_max = 0;
  for (int64_t t = 0; t < n; ++t) {
    rows_max = std::max(rows_max, args.window + visible_rows(args, t).num_compressed);
  }
  // All heads of a row share its visible rows, so they stay together unless threads would idle.
  int64_t heads = std::min(args.num_heads, kAttendHeadsAtOnce);
  if (n < num_threads) {
    const int64_t parts = (num_threads + n - 1) / n;
    heads = std::min(heads, (args.num_heads + parts - 1) / parts);
  }
  const int64_t units_per_row = (args.num_heads + heads - 1) / heads;

  const Scratch::Frame frame(*exec.scratch);
  const std::byte** pointers = exec.scratch->take<const std::byte*>(num_threads * rows_max);
  float* scores = exec.scratch->take<float>(num_threads * heads * rows_max);
  const StepRowBytes own = own_rows(exec, args);
  cpu::run_items(*exec.pool, n * units_per_row, [&](int thread_idx, int64_t unit) {
    const int64_t first_head = unit % units_per_row * heads;
    attend_heads(
        kernels, args, own, unit / units_per_row, first_head,
        std::min(heads, args.num_heads - first_head),
        {pointers + thread_idx * rows_max, scores + thread_idx * heads * rows_max});
  });
  return {};
}

}  // namespace tandem::detail
