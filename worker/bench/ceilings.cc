#include "worker/bench/ceilings.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/core/scratch.h"
#include "kernels/cpu/cpu_kernels.h"

namespace tandem {
namespace {

constexpr int64_t kMemoryBytes = int64_t{512} << 20;

/// A sum that no compiler can drop and that costs less than the reading.
uint64_t sum_words(const std::byte* data, int64_t bytes) {
  uint64_t sums[16] = {};
  for (int64_t i = 0; i + 128 <= bytes; i += 128) {
    uint64_t words[16];
    std::memcpy(words, data + i, sizeof(words));
    for (int j = 0; j < 16; ++j) sums[j] += words[j];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
}

/// The best rate of `work` units a call, over calls that together take at least a tenth of a
/// second.
template <class Fn>
double best_rate(const Clock& clock, double work, const Fn& fn) {
  double best = 0;
  double spent = 0;
  for (int pass = 0; pass < 5 || spent < 0.1; ++pass) {
    const Clock::Time start = clock.now();
    fn();
    const double seconds = std::max(1e-9, seconds_between(start, clock.now()));
    best = std::max(best, work / seconds);
    spent += seconds;
  }
  return best;
}

double measure_int8(ThreadPool& pool, const CpuKernels& kernels, const Clock& clock) {
  constexpr int64_t kRows = 64;
  constexpr int64_t kDepth = 1024;
  constexpr int kRounds = 200;
  const std::vector<std::byte> weights(
      static_cast<size_t>(kPanelRows * row_bytes(DType::kQ8_0, kDepth)));
  const std::vector<int8_t> q(kRows * kDepth, 1);
  const std::vector<float> scale(kRows * kDepth / 32, 1.0f);
  const std::vector<int16_t> sums(kRows * kDepth / 16, 16);
  Int8Rows x;
  x.q = q.data();
  x.scale = scale.data();
  x.sums = sums.data();
  x.k = x.q_stride = kDepth;
  x.scale_stride = kDepth / 32;
  x.sums_stride = kDepth / 16;
  const auto panel_size = static_cast<size_t>(panel_bytes(DType::kQ8_0, kDepth));
  std::vector<std::byte> panel(panel_size + 64);
  void* start = panel.data();
  size_t room = panel.size();
  auto* aligned = static_cast<std::byte*>(std::align(64, panel_size, start, room));
  kernels.int8.pack(
      DType::kQ8_0, weights.data(), row_bytes(DType::kQ8_0, kDepth), kPanelRows, kDepth, aligned);
  const double macs = double(kRows) * kDepth * kPanelRows * kRounds * pool.num_threads();
  return best_rate(clock, macs, [&] {
    pool.run([&](int) {
      float out[kRows * kPanelRows];
      for (int i = 0; i < kRounds; ++i) {
        kernels.int8.gemm(DType::kQ8_0, aligned, kPanelRows, x, nullptr, kRows, out, kPanelRows);
      }
    });
  });
}

double measure_f32(ThreadPool& pool, const CpuKernels& kernels, const Clock& clock) {
  constexpr int64_t kRows = 16;
  constexpr int64_t kDepth = 256;
  constexpr int kRounds = 2000;
  const std::vector<float> w(kPanelRows * kDepth, 1.0f);
  const std::vector<float> x(kRows * kDepth, 1.0f);
  const double macs = double(kRows) * kDepth * kPanelRows * kRounds * pool.num_threads();
  return best_rate(clock, macs, [&] {
    pool.run([&](int) {
      float out[kRows * kPanelRows];
      for (int i = 0; i < kRounds; ++i) {
        kernels.f32.gemm(
            w.data(), kPanelRows, kDepth, x.data(), kDepth, nullptr, kRows, out, kPanelRows);
      }
    });
  });
}

}  // namespace

double measure_read_rate(ThreadPool& pool, int64_t bytes, const Clock& clock) {
  const auto memory = host_allocator()->allocate(static_cast<size_t>(bytes));
  if (memory == nullptr) return 0;
  std::memset(memory->data(), 1, static_cast<size_t>(bytes));
  std::atomic<uint64_t> sink{0};
  const int64_t part = bytes / pool.num_threads() / 128 * 128;
  return best_rate(clock, double(part) * pool.num_threads(), [&] {
    pool.run([&](int thread_idx) {
      sink.fetch_add(sum_words(memory->data() + thread_idx * part, part));
    });
  });
}

Ceilings measure_ceilings(
    ThreadPool& pool, CpuIsa isa, int64_t working_set_bytes, const Clock& clock) {
  const CpuKernels& kernels = cpu_kernels(isa);
  Ceilings out;
  out.memory_bytes_per_s = measure_read_rate(pool, kMemoryBytes, clock);
  out.cached_bytes_per_s =
      measure_read_rate(pool, std::max<int64_t>(working_set_bytes, 1 << 20), clock);
  out.int8_macs_per_s = measure_int8(pool, kernels, clock);
  out.f32_macs_per_s = measure_f32(pool, kernels, clock);
  return out;
}

}  // namespace tandem
