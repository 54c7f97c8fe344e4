// The two projections run as linear(). Then one thread for each channel pools a window and the CTA
// finishes the row. In decode one kernel adds ape and pools, a CTA for each segment, since a
// segment's rows read one another; in prefill adding and pooling are two kernels.

#include <cuda_runtime.h>

#include <array>

#include "kernels/compress/compress_impl.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/regime.h"
#include "kernels/cuda/row_finish.cuh"
#include "kernels/cuda/row_math.cuh"
#include "kernels/gemm/gemm.h"
#include "kernels/linear/gemv.h"

namespace tandem::detail {
namespace {

struct CompressShared {
  float values[cuda::kFinishRowMax];
  float sums[33];
};

__device__ __forceinline__ void add_ape(
    const CompressArgs& args, int row, int pos, int begin, int step) {
  const int width = static_cast<int>(compress_width(args.ratio, args.row_dim));
  float* g = args.projected.data + row * args.projected.stride + width;
  const std::byte* ape = args.ape.data + pos % args.ratio * args.ape.row_bytes;
  for (int i = begin; i < width; i += step) g[i] += cuda::load_value(args.ape.dtype, ape, i);
}

/// Pools the window that ends at position pos of the segment and stores its row. All threads.
__device__ __forceinline__ void pool_window(
    const CompressArgs& args, const Segment& segment, int64_t pos, CompressShared& shared) {
  const int i = threadIdx.x;
  const int row_dim = static_cast<int>(args.row_dim);
  const int width = static_cast<int>(compress_width(args.ratio, args.row_dim));
  const int ratio = static_cast<int>(args.ratio);
  const int span = static_cast<int>(compress_span(args.ratio));
  const DType dtype = args.history.dtype;

  // u of a slot; g is `width` values further on.
  const auto slot = [&](int back, int64_t& offset) {
    const int64_t p = pos - back;
    offset = i + (width > row_dim && back < ratio ? row_dim : 0);
    if (p >= segment.first_pos) {
      return reinterpret_cast<const std::byte*>(
          args.projected.data +
          (segment.first_row + (p - segment.first_pos)) * args.projected.stride);
    }
    return const_cast<const std::byte*>(
        args.history.data + segment.bank * args.history.bank_bytes +
        p % args.history.capacity_rows * args.history.row_bytes);
  };
  const auto load = [&](int back, int part) {
    int64_t offset = 0;
    const std::byte* row = slot(back, offset);
    const DType row_dtype = pos - back >= segment.first_pos ? DType::kF32 : dtype;
    return cuda::load_value(row_dtype, row, offset + part * width);
  };

  const int oldest = static_cast<int>(min(static_cast<int64_t>(span - 1), pos));
  const bool active = i < row_dim;  // the last warp may be wider than the row
  float value = 0;
  if (active) {
    float largest = -INFINITY;
#pragma unroll 8
    for (int back = oldest; back >= 0; --back) largest = fmaxf(largest, load(back, 1));
    float sum = 0;
    float weighted = 0;
#pragma unroll 4
    for (int back = oldest; back >= 0; --back) {
      const float weight = expf(load(back, 1) - largest);
      sum += weight;
      weighted += weight * load(back, 0);
    }
    value = weighted / sum;
  }

  const float mean_square =
      cuda::cta_sum_dynamic(value * value, shared.sums) / static_cast<float>(row_dim);
  if (active) value = value * (1.0f / sqrtf(mean_square + args.rms_eps)) * args.norm.data[i];
  const int64_t row_idx = pos / ratio;
  value = cuda::finish_row_value(
      value, row_dim, args.rotary, row_idx * ratio, args.rounding, shared.values);
  if (active) {
    cuda::store_value(
        args.rows.dtype,
        args.rows.data + segment.bank * args.rows.bank_bytes + row_idx * args.rows.row_bytes, i,
        value);
  }
  __syncthreads();  // the next window reuses `shared`
}

// Grid: one CTA for each row of the step, a thread for each channel; the CTA of a segment's first
// row does the segment.
__global__ void compress_segment_kernel(const __grid_constant__ CompressArgs args) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  __shared__ CompressShared shared;
  const int row = blockIdx.x;
  const Segment segment = args.step.segments[args.step.segment[row]];
  if (segment.first_row != row) return;
  for (int r = 0; r < segment.num_rows; ++r) {
    add_ape(args, row + r, segment.first_pos + r, threadIdx.x, blockDim.x);
  }
  __syncthreads();
  for (int r = 0; r < segment.num_rows; ++r) {
    const int pos = segment.first_pos + r;
    if ((pos + 1) % args.ratio == 0) pool_window(args, segment, pos, shared);
  }
}

// Grid: one CTA for each row.
__global__ void compress_add_kernel(const __grid_constant__ CompressArgs args) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  add_ape(args, blockIdx.x, args.step.pos[blockIdx.x], threadIdx.x, blockDim.x);
}

// Grid: one CTA for each row, a thread for each channel; rows that end no window have nothing to
// do.
__global__ void compress_pool_kernel(const __grid_constant__ CompressArgs args) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  __shared__ CompressShared shared;
  const int pos = args.step.pos[blockIdx.x];
  if ((pos + 1) % args.ratio != 0) return;
  pool_window(args, args.step.segments[args.step.segment[blockIdx.x]], pos, shared);
}

}  // namespace

Status compress_cuda(const Exec& exec, const CompressArgs& args) {
  const int64_t n = args.step.num_rows;
  const int64_t width = compress_width(args.ratio, args.row_dim);
  TANDEM_REQUIRE(
      args.row_dim % 2 == 0 && args.row_dim <= cuda::kFinishRowMax,
      str_cat(
          "compress: row_dim is ", args.row_dim, ", on CUDA even and at most ",
          cuda::kFinishRowMax));
  TANDEM_REQUIRE(
      args.ape.dtype == DType::kF32 || args.ape.dtype == DType::kF16 ||
          args.ape.dtype == DType::kBF16,
      "compress: ape must be F32, F16 or BF16");
  const Rows& projected = args.projected;
  const Rows u = {projected.data, n, width, projected.stride};
  const Rows g = {projected.data + width, n, width, projected.stride};
  if (cuda::is_prefill(exec) && cuda::gemm_takes(args.kv) && cuda::gemm_takes(args.gate)) {
    TANDEM_TRY(cuda::gemm_linears(exec, args.x, {{{args.kv, u}, {args.gate, g}}}));
  } else {
    const std::array<cuda::GemvPart, 2> parts = {{{args.x, args.kv, u}, {args.x, args.gate, g}}};
    TANDEM_TRY(cuda::gemv(exec, parts));
  }
  const dim3 grid(static_cast<unsigned>(n));
  const dim3 cta(static_cast<unsigned>((args.row_dim + 31) / 32 * 32));
  if (!cuda::is_prefill(exec)) {
    return cuda::launch("compress", compress_segment_kernel, grid, cta, 0, exec.stream, args);
  }
  TANDEM_TRY(
      cuda::launch("compress_add", compress_add_kernel, grid, dim3(256), 0, exec.stream, args));
  return cuda::launch("compress_pool", compress_pool_kernel, grid, cta, 0, exec.stream, args);
}

}  // namespace tandem::detail
