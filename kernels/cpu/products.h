#pragma once

#include <cstdint>
#include <span>

#include "kernels/core/exec.h"
#include "kernels/core/views.h"
#include "kernels/cpu/cpu_kernels.h"

namespace tandem::cpu {

/// Rows of activations in the forms that weights meet them in; a form that was not asked for is
/// empty.
struct Activations {
  ConstRows f32;
  Int8Rows k32;
  Int8Rows k256;

  /// Columns [begin, begin + count): both multiples of the groups that are there.
  Activations columns(int64_t begin, int64_t count) const;
};

/// Which int8 forms a set of weights needs.
struct ActivationForms {
  bool k32 = false;
  bool k256 = false;
  constexpr ActivationForms& add(const WeightView& weight) {
    if (weight.rows == 0 || !is_block_type(weight.dtype)) return *this;
    (int8_grouping(weight.dtype) == Int8Grouping::k32 ? k32 : k256) = true;
    return *this;
  }
};

/// Quantises x into scratch, as one step of the pool if there are many rows.
Activations prepare(
    const Exec& exec, const CpuKernels& kernels, ConstRows x, ActivationForms forms);

/// out[r * out_stride + i] = weight row i . row row_ids[r] of x (row r if row_ids is null).
struct Product {
  WeightView weight;
  const Activations* x = nullptr;
  const int32_t* row_ids = nullptr;
  int64_t n = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
};

/// From this many activation rows on, a weight row is unpacked once for all of them.
inline constexpr int64_t kBlockedRowsMin = 4;
/// Weight rows of one unit of work; fewer where a weight has few.
inline constexpr int64_t kVectorUnitRows = 32;
inline constexpr int64_t kVectorUnitRowsMin = 8;
/// Activation rows of one unit of work: their int8 values stay in a core's cache.
inline constexpr int64_t kChunkRows = 256;

/// Scratch of one thread for multiply() of this weight. Never zero.
int64_t panel_scratch_bytes(const WeightView& weight);

/// The outputs [first, first + count) of rows [first_row, first_row + num_rows) of a product, by
/// the calling thread. out points to the row first_row, the output `first`. `panel`:
/// panel_scratch_bytes(), aligned to 64.
void multiply(
    const CpuKernels& kernels, const Product& product, int64_t first, int64_t count,
    int64_t first_row, int64_t num_rows, float* out, int64_t out_stride, std::byte* panel);

/// All products, as one step of the pool.
void run_products(const Exec& exec, const CpuKernels& kernels, std::span<const Product> products);

}  // namespace tandem::cpu
