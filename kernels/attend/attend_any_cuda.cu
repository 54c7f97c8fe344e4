// Attention for heads of any size, in float32: one CTA for each head and row. The models' shape has
// its own kernels in attend_cuda.cu.

#include "kernels/attend/attend_any.h"

#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/row_math.cuh"

namespace tandem::detail {
namespace {

constexpr int kThreads = 128;
constexpr int kHeadDimMax = 1024;
constexpr int kValuesPerThread = kHeadDimMax / kThreads;

/// A row of the list: where it is, in which type, and the type it is rounded to.
struct ListRow {
  const std::byte* data = nullptr;  // null: not there
  DType dtype = DType::kF32;
  DType rounding = DType::kF32;
};

__device__ __forceinline__ float load_rounded(const ListRow& row, int64_t idx) {
  const float value = cuda::load_value(row.dtype, row.data, idx);
  if (row.rounding == DType::kF16) return __half2float(__float2half_rn(value));
  if (row.rounding == DType::kBF16) return __bfloat162float(__float2bfloat16_rn(value));
  return value;
}

/// Row `idx` of the list of query `row`: its window, then its compressed rows.
__device__ __forceinline__ ListRow list_row(const AttendArgs& args, int64_t row, int64_t idx) {
  const Segment segment = args.step.segments[args.step.segment[row]];
  const int64_t pos = args.step.pos[row];
  const int64_t window = min(pos + 1, args.window);
  const SlabView& ring = args.window_rows;
  if (idx < window) {
    const int64_t p = pos - window + 1 + idx;
    if (p >= segment.first_pos) {
      const float* own =
          args.kv_row.data + (segment.first_row + p - segment.first_pos) * args.kv_row.stride;
      return {reinterpret_cast<const std::byte*>(own), DType::kF32, ring.dtype};
    }
    return {
        ring.data + segment.bank * ring.bank_bytes + p % ring.capacity_rows * ring.row_bytes,
        ring.dtype, DType::kF32};
  }
  int64_t t = idx - window;
  if (args.selection.data != nullptr) {
    t = args.selection.data[row * args.selection.stride + t];
    if (t < 0) return {};
  }
  const SlabView& slab = args.compressed_rows;
  return {slab.data + segment.bank * slab.bank_bytes + t * slab.row_bytes, slab.dtype, DType::kF32};
}

// Grid: (heads, rows). Rows are taken kThreads at a time: a score each, then the output dimensions
// are shared out.
__global__ __launch_bounds__(kThreads) void attend_any_kernel(
    const __grid_constant__ AttendArgs args) {
  __shared__ float query[kHeadDimMax];
  __shared__ float probability[kThreads];
  __shared__ ListRow rows[kThreads];
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const auto head_dim = static_cast<int>(args.head_dim);
  const int64_t row = blockIdx.y;
  const int64_t pos = args.step.pos[row];
  const float* q = args.q.data + row * args.q.stride + blockIdx.x * args.head_dim;
  for (int i = threadIdx.x; i < head_dim; i += kThreads) query[i] = q[i];
  int64_t compressed = 0;
  if (args.compressed_rows.data != nullptr) {
    compressed = (pos + 1) / args.ratio;
    if (args.selection.data != nullptr) compressed = min(compressed, args.selection.cols);
  }
  const int64_t total = min(pos + 1, args.window) + compressed;
  const float scale = 1.0f / sqrtf(static_cast<float>(head_dim));

  float top = args.sinks.data[blockIdx.x];
  float sum = 1;  // the sink's share
  float out[kValuesPerThread] = {};
  for (int64_t first = 0; first < total; first += kThreads) {
    const int64_t idx = first + threadIdx.x;
    const ListRow own = idx < total ? list_row(args, row, idx) : ListRow{};
    __syncthreads();  // the block before is done with, and the query is there
    float score = -INFINITY;
    if (own.data != nullptr) {
      score = 0;
      for (int i = 0; i < head_dim; ++i) score = __fmaf_rn(query[i], load_rounded(own, i), score);
      score *= scale;
    }
    rows[threadIdx.x] = own;
    const float block_top = fmaxf(top, cuda::cta_max<kThreads>(score));
    const float p = expf(score - block_top);
    probability[threadIdx.x] = p;
    const float shrink = expf(top - block_top);
    sum = sum * shrink + cuda::cta_sum<kThreads>(p);
    top = block_top;
    __syncthreads();
    const int count = static_cast<int>(min(int64_t{kThreads}, total - first));
#pragma unroll
    for (int j = 0; j < kValuesPerThread; ++j) {
      const int dim = j * kThreads + threadIdx.x;
      if (dim >= head_dim) continue;
      float value = out[j] * shrink;
      for (int i = 0; i < count; ++i) {
        if (rows[i].data != nullptr) {
          value = __fmaf_rn(probability[i], load_rounded(rows[i], dim), value);
        }
      }
      out[j] = value;
    }
  }

  __syncthreads();
#pragma unroll
  for (int j = 0; j < kValuesPerThread; ++j) {
    const int dim = j * kThreads + threadIdx.x;
    if (dim < head_dim) query[dim] = out[j] / sum;
  }
  __syncthreads();
  float* target = args.out.data + row * args.out.stride + blockIdx.x * args.head_dim;
  const int tail = head_dim - static_cast<int>(args.rotary.dim);
  for (int i = threadIdx.x; i < head_dim; i += kThreads) {
    float value = query[i];
    if (i >= tail) {
      const int pair = (i - tail) / 2;
      const float angle = -(static_cast<float>(pos) * args.rotary.frequencies[pair]);
      const float2 turned =
          cuda::rotate_pair(query[tail + 2 * pair], query[tail + 2 * pair + 1], angle);
      value = (i - tail) % 2 == 0 ? turned.x : turned.y;
    }
    target[i] = value;
  }
}

}  // namespace

Status attend_any_cuda(const Exec& exec, const AttendArgs& args) {
  TANDEM_REQUIRE(
      args.head_dim <= kHeadDimMax,
      str_cat("attend: head_dim is ", args.head_dim, ", on CUDA at most ", kHeadDimMax));
  return cuda::launch(
      "attend", attend_any_kernel,
      dim3(static_cast<unsigned>(args.num_heads), static_cast<unsigned>(args.step.num_rows)),
      dim3(kThreads), 0, exec.stream, args);
}

}  // namespace tandem::detail
