#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa.h"
#include "model/formats/dtype.h"

namespace tandem {

// The inner loops of the fast CPU path, as a table of functions for each instruction set. All
// tables give the same bits; the arithmetic they share is written down in kernels/cpu/README.md.
// Arguments are plain pointers that the operations have checked. Threads: any, on disjoint outputs.

/// Consecutive activations that share a scale, after the weight type they meet.
enum class Int8Grouping : uint8_t { k32, k256 };

/// True for the block types, which meet int8 activations; F32, F16 and BF16 meet float32.
constexpr bool is_block_type(DType dtype) {
  return block_values(dtype) > 1;
}
constexpr Int8Grouping int8_grouping(DType dtype) {
  return block_values(dtype) == 32 ? Int8Grouping::k32 : Int8Grouping::k256;
}
constexpr int64_t group_values(Int8Grouping grouping) {
  return grouping == Int8Grouping::k32 ? 32 : 256;
}

/// Values of a k256 group that share an integer factor, and the largest factor.
inline constexpr int64_t kFactorValues = 32;
inline constexpr int32_t kFactorMax = 16;

/// Rows of activations as int8: x[i] ~ q[i] * factors[i / 32] * scale[i / group], where a k32 row
/// has no factors (they are 1). sums[j] is factors[j / 2] times the sum of q[16 j ...].
struct Int8Rows {
  const int8_t* q = nullptr;
  const float* scale = nullptr;
  const int32_t* factors = nullptr;  // 1 ... kFactorMax; null for k32
  const int16_t* sums = nullptr;
  int64_t k = 0;
  int64_t q_stride = 0;        // a multiple of 64
  int64_t scale_stride = 0;    // k / group
  int64_t factors_stride = 0;  // k / 32 or 0
  int64_t sums_stride = 0;     // k / 16
};

/// Outputs of one panel: weight rows that a blocked product works on together.
inline constexpr int64_t kPanelRows = 16;

struct Int8Kernels {
  /// q[k], scale[k / group], factors[k / 32] (k256 only) and sums[k / 16] of one row. Limits: k a
  /// multiple of the group.
  void (*quantize)(
      const float* x, int64_t k, Int8Grouping grouping, int8_t* q, float* scale, int32_t* factors,
      int16_t* sums);

  /// out[i] = weight row i . the one row x, for i < num_rows.
  void (*gemv)(
      DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, const Int8Rows& x,
      float* out);

  /// Expands num_rows <= kPanelRows weight rows into a panel (missing rows are zero).
  void (*pack)(
      DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, int64_t k,
      std::byte* panel);

  /// out[r * out_stride + i] = panel row i . row row_ids[r] of x (row r if row_ids is null), for
  /// r < n, i < num_rows.
  void (*gemm)(
      DType dtype, const std::byte* panel, int64_t num_rows, const Int8Rows& x,
      const int32_t* row_ids, int64_t n, float* out, int64_t out_stride);
};

/// Bytes of a panel of kPanelRows rows of k values.
int64_t panel_bytes(DType dtype, int64_t k);

/// Rows of values of one type at arbitrary places.
struct RowPointers {
  const std::byte* const* rows = nullptr;
  int64_t count = 0;
  DType dtype = DType::kF32;  // F32, F16 or BF16
};

struct FloatKernels {
  /// out[i] = weight row i . x for i < num_rows; weights F32, F16 or BF16.
  void (*gemv)(
      DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, int64_t k,
      const float* x, float* out);

  /// out[i] = value i of a row of F32, F16 or BF16.
  void (*expand)(DType dtype, const std::byte* row, int64_t k, float* out);

  /// out[r * out_stride + i] = w[i * k ...] . x[row_ids[r] * x_stride ...] (row r if row_ids is
  /// null), r < n, i < num_rows.
  void (*gemm)(
      const float* w, int64_t num_rows, int64_t k, const float* x, int64_t x_stride,
      const int32_t* row_ids, int64_t n, float* out, int64_t out_stride);

  float (*dot)(const float* a, const float* b, int64_t n);

  /// out[i] = x[i] * (1 / sqrt(mean(x^2) + eps)) * weight[i]; weight null: 1. out may be x.
  void (*rms_norm)(const float* x, const float* weight, int64_t n, float eps, float* out);

  /// out[i] = silu(min(gate[i], limit)) * clamp(up[i], -limit, limit) * weight. out may be gate.
  void (*swiglu)(
      const float* gate, const float* up, int64_t n, float limit, float weight, float* out);

  /// scores[h * scores_stride + j] = q[h * head_dim ...] . rows[j], then times `scale`.
  /// Limits: head_dim a multiple of 16.
  void (*attend_scores)(
      const float* q, int64_t num_heads, int64_t head_dim, RowPointers rows, float scale,
      float* scores, int64_t scores_stride);

  /// scores[j] = e^{scores[j] - m}, m the largest of them and `sink`; returns 1 / (their sum and
  /// e^{sink - m}).
  float (*softmax)(float* scores, int64_t count, float sink);

  /// out[h * head_dim + i] += sum_j p[h * p_stride + j] * rows[j][i], j ascending.
  /// Limits: head_dim a multiple of 16.
  void (*attend_mix)(
      const float* p, int64_t p_stride, int64_t num_heads, int64_t head_dim, RowPointers rows,
      float* out);

  /// x[i] *= factor.
  void (*scale)(float* x, int64_t n, float factor);

  /// scores[j] = sum_h max(0, q_h . row_j) * weights[h], h ascending; row j at rows + j *
  /// row_bytes. Limits: head_dim a multiple of 16.
  void (*index_scores)(
      const float* q, const float* weights, int64_t num_heads, int64_t head_dim,
      const std::byte* rows, int64_t row_bytes, DType dtype, int64_t count, float* scores);

  /// pooled[i] = sum_r softmax_r(gate[r][i]) * value[r][i], r ascending, i < n.
  void (*pool)(
      const float* const* value, const float* const* gate, int64_t num_slots, int64_t n,
      float* pooled);

  /// out[i] = 1 / (1 + e^{-x[i]}).
  void (*sigmoid)(const float* x, int64_t n, float* out);

  /// out[i] = sum_j weights[j] * x[j * n + i], j ascending.
  void (*mix_streams)(
      const float* x, const float* weights, int64_t num_streams, int64_t n, float* out);

  /// streams[k * n + i] = post[k] * branch[i] + sum_j comb[j * s + k] * streams[j * n + i].
  /// Limits: s <= 8.
  void (*hc_post)(
      float* streams, const float* branch, const float* post, const float* comb, int64_t s,
      int64_t n);

  /// The Sinkhorn normalisation of hc_pre on comb [s * s]. Limits: s <= 8.
  void (*sinkhorn)(float* comb, int64_t s, int32_t iterations, float eps);

  /// Cosine and sine of pos * frequencies[i], to about 1e-7. Limits: 0 <= the angle <= 2^21.
  void (*rotary_angles)(
      const float* frequencies, int64_t count, float pos, float* cosines, float* sines);
};

struct CpuKernels {
  CpuIsa isa = CpuIsa::kPortable;
  Int8Kernels int8;
  FloatKernels f32;
};

/// The kernels of an instruction set. Limits: kBest or one of available_cpu_isas().
const CpuKernels& cpu_kernels(CpuIsa isa);

}  // namespace tandem
