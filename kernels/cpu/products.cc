#include "kernels/cpu/products.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/cpu/units.h"

namespace tandem::cpu {
namespace {

// What a thread reads in the time of a step's barrier.
constexpr int64_t kSerialBytes = 48 << 10;
constexpr int64_t kProductsMax = 64;

constexpr int64_t round_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

/// Where quantised rows go.
struct Int8Storage {
  int8_t* q = nullptr;
  float* scale = nullptr;
  int32_t* factors = nullptr;
  int16_t* sums = nullptr;
  Int8Grouping grouping = Int8Grouping::k32;
  Int8Rows view;

  Int8Storage(Scratch& scratch, Int8Grouping g, int64_t n, int64_t k) : grouping(g) {
    view.k = k;
    view.q_stride = round_up(k, 64);
    view.scale_stride = k / group_values(g);
    view.factors_stride = g == Int8Grouping::k256 ? k / kFactorValues : 0;
    view.sums_stride = k / 16;
    view.q = q = scratch.take<int8_t>(n * view.q_stride);
    view.scale = scale = scratch.take<float>(n * view.scale_stride);
    if (g == Int8Grouping::k256) {
      view.factors = factors = scratch.take<int32_t>(n * view.factors_stride);
    }
    view.sums = sums = scratch.take<int16_t>(n * view.sums_stride);
  }

  void quantize(const CpuKernels& kernels, const float* x, int64_t row) const {
    kernels.int8.quantize(
        x, view.k, grouping, q + row * view.q_stride, scale + row * view.scale_stride,
        factors + row * view.factors_stride, sums + row * view.sums_stride);
  }
};

Int8Rows int8_columns(const Int8Rows& x, Int8Grouping grouping, int64_t begin, int64_t count) {
  if (x.q == nullptr) return x;
  Int8Rows out = x;
  out.q += begin;
  out.scale += begin / group_values(grouping);
  if (x.factors != nullptr) out.factors += begin / kFactorValues;
  out.sums += begin / 16;
  out.k = count;
  return out;
}

const Int8Rows& int8_form(const Activations& x, DType dtype) {
  const Int8Rows& form = int8_grouping(dtype) == Int8Grouping::k32 ? x.k32 : x.k256;
  TANDEM_CHECK(form.q != nullptr);  // prepare() was told of every weight
  return form;
}

Int8Rows from_row(Int8Rows x, int64_t row) {
  x.q += row * x.q_stride;
  x.scale += row * x.scale_stride;
  x.factors += row * x.factors_stride;
  x.sums += row * x.sums_stride;
  return x;
}

int64_t rows_of_unit(const Product& product) {
  if (product.n >= kBlockedRowsMin) return kPanelRows;
  return product.weight.rows < 8 * kVectorUnitRows ? kVectorUnitRowsMin : kVectorUnitRows;
}

/// Output rows one activation row at a time, a few weight rows in turn so that they stay in cache.
void multiply_vectors(
    const CpuKernels& kernels, const Product& product, int64_t first, int64_t count,
    int64_t first_row, int64_t num_rows, float* out, int64_t out_stride) {
  const WeightView& weight = product.weight;
  for (int64_t r = first_row; r < first_row + num_rows; ++r) {
    const int64_t row = product.row_ids != nullptr ? product.row_ids[r] : r;
    float* y = out + (r - first_row) * out_stride;
    if (is_block_type(weight.dtype)) {
      kernels.int8.gemv(
          weight.dtype, weight.row(first), weight.row_bytes, count,
          from_row(int8_form(*product.x, weight.dtype), row), y);
    } else {
      kernels.f32.gemv(
          weight.dtype, weight.row(first), weight.row_bytes, count, weight.cols,
          product.x->f32.row(row), y);
    }
  }
}

void multiply_panel(
    const CpuKernels& kernels, const Product& product, int64_t first, int64_t count,
    int64_t first_row, int64_t num_rows, float* out, int64_t out_stride, std::byte* panel) {
  const WeightView& weight = product.weight;
  const int32_t* ids = product.row_ids != nullptr ? product.row_ids + first_row : nullptr;
  if (is_block_type(weight.dtype)) {
    Int8Rows x = int8_form(*product.x, weight.dtype);
    if (ids == nullptr) x = from_row(x, first_row);
    kernels.int8.pack(weight.dtype, weight.row(first), weight.row_bytes, count, weight.cols, panel);
    kernels.int8.gemm(weight.dtype, panel, count, x, ids, num_rows, out, out_stride);
    return;
  }
  auto* expanded = reinterpret_cast<float*>(panel);
  for (int64_t i = 0; i < count; ++i) {
    kernels.f32.expand(
        weight.dtype, weight.row(first + i), weight.cols, expanded + i * weight.cols);
  }
  const ConstRows& x = product.x->f32;
  kernels.f32.gemm(
      expanded, count, weight.cols, ids == nullptr ? x.row(first_row) : x.data, x.stride, ids,
      num_rows, out, out_stride);
}

}  // namespace

Activations Activations::columns(int64_t begin, int64_t count) const {
  Activations out;
  out.f32 = {f32.data + begin, f32.rows, count, f32.stride};
  out.k32 = int8_columns(k32, Int8Grouping::k32, begin, count);
  out.k256 = int8_columns(k256, Int8Grouping::k256, begin, count);
  return out;
}

Activations prepare(
    const Exec& exec, const CpuKernels& kernels, ConstRows x, ActivationForms forms) {
  Activations out;
  out.f32 = x;
  if (!forms.k32 && !forms.k256) return out;
  // Storage of a form that is not wanted has no rows.
  const Int8Storage s32(*exec.scratch, Int8Grouping::k32, forms.k32 ? x.rows : 0, x.cols);
  const Int8Storage s256(*exec.scratch, Int8Grouping::k256, forms.k256 ? x.rows : 0, x.cols);
  if (forms.k32) out.k32 = s32.view;
  if (forms.k256) out.k256 = s256.view;
  constexpr int64_t kSerialValues = 16 << 10;
  const int64_t grain = std::max<int64_t>(1, kSerialValues / x.cols);
  exec.pool->for_range(x.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      if (forms.k32) s32.quantize(kernels, x.row(t), t);
      if (forms.k256) s256.quantize(kernels, x.row(t), t);
    }
  });
  return out;
}

int64_t panel_scratch_bytes(const WeightView& weight) {
  if (is_block_type(weight.dtype)) return round_up(panel_bytes(weight.dtype, weight.cols), 128);
  return round_up(kPanelRows * weight.cols * static_cast<int64_t>(sizeof(float)), 128);
}

void multiply(
    const CpuKernels& kernels, const Product& product, int64_t first, int64_t count,
    int64_t first_row, int64_t num_rows, float* out, int64_t out_stride, std::byte* panel) {
  if (num_rows < kBlockedRowsMin) {
    multiply_vectors(kernels, product, first, count, first_row, num_rows, out, out_stride);
    return;
  }
  for (int64_t i = 0; i < count; i += kPanelRows) {
    multiply_panel(
        kernels, product, first + i, std::min(kPanelRows, count - i), first_row, num_rows, out + i,
        out_stride, panel);
  }
}

void run_products(const Exec& exec, const CpuKernels& kernels, std::span<const Product> products) {
  TANDEM_CHECK(products.size() <= kProductsMax);
  std::array<UnitRange, kProductsMax> units;
  int64_t panel = 0;
  bool blocked = false;
  for (size_t j = 0; j < products.size(); ++j) {
    const Product& p = products[j];
    const int64_t unit_rows = rows_of_unit(p);
    const int64_t chunks = (p.n + kChunkRows - 1) / kChunkRows;
    units[j] = {
        (p.weight.rows + unit_rows - 1) / unit_rows * chunks,
        unit_rows * p.weight.row_bytes * std::min(p.n, kChunkRows)};
    panel = std::max(panel, panel_scratch_bytes(p.weight));
    blocked = blocked || p.n >= kBlockedRowsMin;
  }
  const Scratch::Frame frame(*exec.scratch);
  std::byte* panels = exec.scratch->take<std::byte>(panel * exec.pool->num_threads());
  run_units(
      *exec.pool, {units.data(), products.size()}, blocked ? Dealing::kOnDemand : Dealing::kByCost,
      kSerialBytes, [&](int thread_idx, size_t j, int64_t unit) {
        const Product& p = products[j];
        const int64_t unit_rows = rows_of_unit(p);
        const int64_t per_chunk = (p.weight.rows + unit_rows - 1) / unit_rows;
        const int64_t first = unit % per_chunk * unit_rows;
        const int64_t first_row = unit / per_chunk * kChunkRows;
        multiply(
            kernels, p, first, std::min(unit_rows, p.weight.rows - first), first_row,
            std::min(kChunkRows, p.n - first_row), p.out + first_row * p.out_stride + first,
            p.out_stride, panels + thread_idx * panel);
      });
}

}  // namespace tandem::cpu
