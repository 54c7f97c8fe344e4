#include <algorithm>
#include <array>

#include "kernels/compress/compress_impl.h"
#include "kernels/core/slab_rows.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/rotate.h"
#include "kernels/cpu/units.h"
#include "kernels/math/reference_math.h"
#include "model/formats/dequantize.h"

namespace tandem::detail {
namespace {

/// The u and g rows that a pooled row is made of, oldest first.
struct Slots {
  std::array<const float*, kCompressRatioMax> u;
  std::array<const float*, kCompressRatioMax> g;
  int64_t count = 0;
};

void add_ape(const Exec& exec, const CompressArgs& args, int64_t width) {
  const Scratch::Frame frame(*exec.scratch);
  const int64_t n = args.step.num_rows;
  // Expands only the rows that this step meets.
  const int64_t num_rows = std::min(n, args.ratio);
  float* ape = exec.scratch->take<float>(args.ratio * width);
  std::array<bool, kCompressRatioMax> expanded{};
  int64_t num_expanded = 0;
  for (int64_t t = 0; t < n && num_expanded < args.ratio; ++t) {
    const int64_t r = args.step.pos[t] % args.ratio;
    if (expanded[r]) continue;
    expanded[r] = true;
    ++num_expanded;
    dequantize_row(args.ape.dtype, args.ape.row(r), width, ape + r * width);
  }
  exec.pool->for_range(n, std::max<int64_t>(1, num_rows), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* g = args.projected.row(t) + width;
      const float* row = ape + args.step.pos[t] % args.ratio * width;
      for (int64_t i = 0; i < width; ++i) g[i] += row[i];
    }
  });
}

/// Slots of the window that ends at row t. Rows of earlier steps are read in place if the history
/// is float32, else through `older`.
void gather_slots(const CompressArgs& args, int64_t t, float* older, Slots& slots) {
  const int64_t width = compress_width(args.ratio, args.row_dim);
  const bool overlaps = width > args.row_dim;
  const int64_t pos = args.step.pos[t];
  const Segment& segment = args.step.segments[args.step.segment[t]];
  slots.count = 0;
  for (int64_t back = compress_span(args.ratio) - 1; back >= 0; --back) {
    const int64_t p = pos - back;
    if (p < 0) continue;
    const float* row = nullptr;
    if (p >= segment.first_pos) {
      row = args.projected.row(segment.first_row + (p - segment.first_pos));
    } else if (args.history.dtype == DType::kF32) {
      row = reinterpret_cast<const float*>(
          args.history.row(segment.bank, p % args.history.capacity_rows));
    } else {
      load_slab_row(args.history, segment.bank, p % args.history.capacity_rows, older);
      row = older;
      older += 2 * width;
    }
    const int64_t half = overlaps && back < args.ratio ? args.row_dim : 0;
    slots.u[slots.count] = row + half;
    slots.g[slots.count++] = row + width + half;
  }
}

void finish_row(const CpuKernels& kernels, const CompressArgs& args, int64_t t, float* pooled) {
  const int64_t row_idx = args.step.pos[t] / args.ratio;
  kernels.f32.rms_norm(pooled, args.norm.data, args.row_dim, args.rms_eps, pooled);
  cpu::RotaryAngles(kernels, args.rotary, row_idx * args.ratio)
      .rotate_tail(pooled, args.row_dim, /*inverse=*/false);
  if (args.rounding == RowRounding::kFp8) {
    reference::round_fp8_groups(pooled, args.row_dim - args.rotary.dim);
  } else if (args.rounding == RowRounding::kHadamardFp4) {
    reference::hadamard(pooled, args.row_dim);
    reference::round_fp4_groups(pooled, args.row_dim);
  }
  store_slab_row(args.rows, args.step.segments[args.step.segment[t]].bank, row_idx, pooled);
}

/// One row, its channels split over the threads.
void pool_one_row(
    const Exec& exec, const CpuKernels& kernels, const CompressArgs& args, int64_t t) {
  constexpr int64_t kChannels = 64;
  const int64_t width = compress_width(args.ratio, args.row_dim);
  const Scratch::Frame frame(*exec.scratch);
  float* older = exec.scratch->take<float>(compress_span(args.ratio) * 2 * width);
  float* pooled = exec.scratch->take<float>(args.row_dim);
  Slots slots;
  gather_slots(args, t, older, slots);
  const cpu::UnitRange job{(args.row_dim + kChannels - 1) / kChannels, slots.count * kChannels};
  constexpr int64_t kSerialValues = 8192;
  cpu::run_units(
      *exec.pool, {&job, 1}, cpu::Dealing::kByCost, kSerialValues, [&](int, size_t, int64_t unit) {
        const int64_t begin = unit * kChannels;
        std::array<const float*, kCompressRatioMax> u;
        std::array<const float*, kCompressRatioMax> g;
        for (int64_t r = 0; r < slots.count; ++r) {
          u[r] = slots.u[r] + begin;
          g[r] = slots.g[r] + begin;
        }
        kernels.f32.pool(
            u.data(), g.data(), slots.count, std::min(kChannels, args.row_dim - begin),
            pooled + begin);
      });
  finish_row(kernels, args, t, pooled);
}

}  // namespace

Status compress_fast(const Exec& exec, const CompressArgs& args) {
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const int64_t n = args.step.num_rows;
  const int64_t width = compress_width(args.ratio, args.row_dim);
  const Scratch::Frame frame(*exec.scratch);
  const cpu::Activations x =
      cpu::prepare(exec, kernels, args.x, cpu::ActivationForms{}.add(args.kv).add(args.gate));
  const std::array<cpu::Product, 2> products = {{
      {args.kv, &x, nullptr, n, args.projected.data, args.projected.stride},
      {args.gate, &x, nullptr, n, args.projected.data + width, args.projected.stride},
  }};
  cpu::run_products(exec, kernels, products);
  add_ape(exec, args, width);

  int32_t* ends = exec.scratch->take<int32_t>(n);  // rows that complete a window
  int64_t num_ends = 0;
  for (int64_t t = 0; t < n; ++t) {
    if ((args.step.pos[t] + 1) % args.ratio == 0) ends[num_ends++] = static_cast<int32_t>(t);
  }
  if (num_ends == 0) return {};
  if (num_ends == 1) {
    pool_one_row(exec, kernels, args, ends[0]);
    return {};
  }
  const int64_t older_size = compress_span(args.ratio) * 2 * width;
  float* temporary =
      exec.scratch->take<float>(exec.pool->num_threads() * (older_size + args.row_dim));
  cpu::run_items(*exec.pool, num_ends, [&](int thread_idx, int64_t i) {
    float* older = temporary + thread_idx * (older_size + args.row_dim);
    float* pooled = older + older_size;
    Slots slots;
    gather_slots(args, ends[i], older, slots);
    kernels.f32.pool(slots.u.data(), slots.g.data(), slots.count, args.row_dim, pooled);
    finish_row(kernels, args, ends[i], pooled);
  });
  return {};
}

}  // namespace tandem::detail
