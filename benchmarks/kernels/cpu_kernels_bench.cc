#include "kernels/cpu/cpu_kernels.h"

#include <benchmark/benchmark.h>

#include <vector>

#include "base/random.h"
#include "model/formats/quantize.h"

// Inner loops on data in the nearest caches, one thread: what a core can do when memory keeps up.
// Bytes are the weights' own.

namespace tandem {
namespace {

constexpr int64_t kCols = 2048;
constexpr int64_t kWeightRows = 64;

std::vector<float> random_floats(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) x = 2.0f * rng.uniform() - 1.0f;
  return out;
}

std::vector<std::byte> weights(DType dtype) {
  const std::vector<float> values = random_floats(kWeightRows * kCols, 1);
  std::vector<std::byte> out(static_cast<size_t>(kWeightRows * row_bytes(dtype, kCols)));
  quantize_row(dtype, values.data(), kWeightRows * kCols, out.data());
  return out;
}

struct Rows8 {
  std::vector<int8_t> q;
  std::vector<float> scale;
  std::vector<int32_t> factors;
  std::vector<int16_t> sums;
  Int8Rows view;

  Rows8(const CpuKernels& kernels, DType dtype, int64_t n) {
    const int64_t groups = kCols / group_values(int8_grouping(dtype));
    const int64_t runs = kCols / kFactorValues;
    q.resize(static_cast<size_t>(n * kCols));
    scale.resize(static_cast<size_t>(n * groups));
    factors.resize(static_cast<size_t>(n * runs));
    sums.resize(static_cast<size_t>(n * kCols / 16));
    const std::vector<float> x = random_floats(n * kCols, 2);
    for (int64_t t = 0; t < n; ++t) {
      kernels.int8.quantize(
          x.data() + t * kCols, kCols, int8_grouping(dtype), q.data() + t * kCols,
          scale.data() + t * groups, factors.data() + t * runs, sums.data() + t * kCols / 16);
    }
    view = {q.data(), scale.data(), factors.data(), sums.data(), kCols,
            kCols,    groups,       runs,           kCols / 16};
  }
};

void matrix_vector(benchmark::State& state, const CpuKernels& kernels, DType dtype) {
  const std::vector<std::byte> w = weights(dtype);
  float out[kWeightRows];
  if (is_block_type(dtype)) {
    const Rows8 x(kernels, dtype, 1);
    for (auto _ : state) {
      kernels.int8.gemv(dtype, w.data(), row_bytes(dtype, kCols), kWeightRows, x.view, out);
      benchmark::DoNotOptimize(out);
    }
  } else {
    const std::vector<float> x = random_floats(kCols, 2);
    for (auto _ : state) {
      kernels.f32.gemv(dtype, w.data(), row_bytes(dtype, kCols), kWeightRows, kCols, x.data(), out);
      benchmark::DoNotOptimize(out);
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(w.size()));
}

void blocked_product(benchmark::State& state, const CpuKernels& kernels, DType dtype) {
  const int64_t n = state.range(0);
  const std::vector<std::byte> w = weights(dtype);
  std::vector<float> out(static_cast<size_t>(n * kPanelRows));
  const Rows8 x(kernels, dtype, n);
  std::vector<std::byte> panel(static_cast<size_t>(panel_bytes(dtype, kCols)));
  for (auto _ : state) {
    kernels.int8.pack(dtype, w.data(), row_bytes(dtype, kCols), kPanelRows, kCols, panel.data());
    kernels.int8.gemm(dtype, panel.data(), kPanelRows, x.view, nullptr, n, out.data(), kPanelRows);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * n * kPanelRows * kCols);  // multiply-adds
}

void register_all() {
  constexpr DType kTypes[] = {DType::kQ8_0,    DType::kQ4_K,  DType::kQ2_K, DType::kQ6_K,
                              DType::kIQ2_XXS, DType::kMXFP4, DType::kF16};
  for (const CpuIsa isa : available_cpu_isas()) {
    if (isa == CpuIsa::kPortable) continue;
    const CpuKernels& kernels = cpu_kernels(isa);
    for (const DType dtype : kTypes) {
      const std::string name = std::string("/") + cpu_isa_name(isa) + "/" + dtype_name(dtype);
      benchmark::RegisterBenchmark(
          ("matrix_vector" + name).c_str(),
          [&kernels, dtype](benchmark::State& state) { matrix_vector(state, kernels, dtype); });
      if (!is_block_type(dtype)) continue;
      benchmark::RegisterBenchmark(
          ("blocked_product" + name).c_str(),
          [&kernels, dtype](benchmark::State& state) { blocked_product(state, kernels, dtype); })
          ->Arg(8)
          ->Arg(256);
    }
  }
}

const bool kRegistered = (register_all(), true);

}  // namespace
}  // namespace tandem
