// The queries and head weights are projected with linear(), finished (rotation, Hadamard transform,
// FP4), and every visible row is scored against every head; then a radix select.
//
// Rows and queries that were rounded to FP4 are small integers times powers of two, which bf16
// holds exactly, so the tensor cores' products are exact and a score differs from a float32 one in
// the order of its sums only. Unrounded ones (RowRounding::kNone) are multiplied in float32.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/regime.h"
#include "kernels/cuda/row_finish.cuh"
#include "kernels/cuda/row_math.cuh"
#include "kernels/index_select/index_select_impl.h"
#include "kernels/index_select/select_top_k.h"
#include "kernels/linear/gemv.h"
#include "kernels/linear/linear.h"

namespace tandem::detail {
namespace {

using cuda::copy_async_16;
using cuda::copy_async_commit;
using cuda::copy_async_wait;
using cuda::mma_m16n8k16;
using cuda::pack_pair;
using cuda::shared_address;

constexpr int kHeadDim = 128;
constexpr int kHeadsMax = 64;
constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kDecodeCtas = 128;             // for each row of a decode step
constexpr int kQueryTile = 64;               // prefill: queries that a CTA scores against its rows
constexpr int kQueryStride = kHeadDim + 32;  // 16-byte reads of two rows fall in different banks
constexpr int64_t kScoreBytesMax = int64_t{256} << 20;  // of one prefill block of queries

struct IndexParams {
  IndexSelectArgs args;
  ConstRows raw_queries;   // [n, num_heads * kHeadDim], projected
  ConstRows raw_weights;   // [n, num_heads], projected
  __nv_bfloat16* queries;  // [n, kHeadsMax, kHeadDim]; heads past num_heads are zero
  float* exact_queries;    // or, for the float32 way, [n, num_heads, head_dim]
  float* weights;          // [n, weights_stride], scaled
  int weights_stride;
  float* scores;  // [block rows, score_stride]
  int64_t score_stride;
  int block_first_row;  // the step row of the scores' first row
  int block_rows;
  int rows_bank;  // prefill: the bank of the block's rows
};

// Grid: (heads / 8, rows); a warp finishes one head, four adjacent values a lane.
__global__ __launch_bounds__(kThreads) void finish_queries_kernel(
    const __grid_constant__ IndexParams params) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const IndexSelectArgs& args = params.args;
  const int row = blockIdx.y;
  const int head = blockIdx.x * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int num_heads = static_cast<int>(args.num_heads);
  float v[4] = {};
  if (head < num_heads) {
    const float4 value = reinterpret_cast<const float4*>(
        params.raw_queries.data + row * params.raw_queries.stride + head * kHeadDim)[lane];
    v[0] = value.x;
    v[1] = value.y;
    v[2] = value.z;
    v[3] = value.w;
    const int tail = kHeadDim - static_cast<int>(args.rotary.dim);
    const auto pos = static_cast<float>(args.step.pos[row]);
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int dim = lane * 4 + i;
      if (dim < tail) continue;
      const float2 pair =
          cuda::rotate_pair(v[i], v[i + 1], pos * args.rotary.frequencies[(dim - tail) / 2]);
      v[i] = pair.x;
      v[i + 1] = pair.y;
    }
  }
  const float a0 = v[0] + v[1];
  const float a1 = v[0] - v[1];
  const float a2 = v[2] + v[3];
  const float a3 = v[2] - v[3];
  v[0] = a0 + a2;
  v[1] = a1 + a3;
  v[2] = a0 - a2;
  v[3] = a1 - a3;
#pragma unroll
  for (int stride = 1; stride < 32; stride *= 2) {
#pragma unroll
    for (float& value : v) {
      const float partner = __shfl_xor_sync(0xffffffff, value, stride);
      value = (lane & stride) == 0 ? value + partner : partner - value;
    }
  }
  float largest = 0;
#pragma unroll
  for (float& value : v) {
    value *= 1.0f / sqrtf(static_cast<float>(kHeadDim));
    largest = fmaxf(largest, fabsf(value));
  }
#pragma unroll
  for (int stride = 1; stride < 8; stride *= 2) {  // a group of 32 values is 8 lanes
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, stride));
  }
#pragma unroll
  for (float& value : v) value = cuda::round_fp4(value, largest);
  reinterpret_cast<uint2*>(params.queries + (int64_t{row} * kHeadsMax + head) * kHeadDim)[lane] = {
      pack_pair<__nv_bfloat16>(v[0], v[1]), pack_pair<__nv_bfloat16>(v[2], v[3])};
  if (lane == 0) {
    const float scale = 1.0f / sqrtf(static_cast<float>(kHeadDim * num_heads));
    params.weights[row * params.weights_stride + head] =
        head < num_heads ? params.raw_weights.data[row * params.raw_weights.stride + head] * scale
                         : 0.0f;
  }
}

// The dot products of 16 rows and 8 heads over 32 values need, of each, 16 bytes a thread: with
// pair = lane % 4 it takes values 8 pair ... 8 pair + 7 and gives words 0 and 1 to the first
// instruction, 2 and 3 to the second. Rows and queries agree on the order, so the sum is the same.

/// Eight values of an indexer row as bf16.
__device__ __forceinline__ uint4 load_row_values(DType dtype, const std::byte* row, int first) {
  if (dtype == DType::kBF16) return *reinterpret_cast<const uint4*>(row + first * 2);
  if (dtype == DType::kF16) {
    const uint4 raw = *reinterpret_cast<const uint4*>(row + first * 2);
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
    uint32_t out[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = __half22float2(reinterpret_cast<const __half2&>(words[i]));
      out[i] = pack_pair<__nv_bfloat16>(pair.x, pair.y);
    }
    return {out[0], out[1], out[2], out[3]};
  }
  const auto* source = reinterpret_cast<const float4*>(row + first * 4);
  const float4 low = source[0];
  const float4 high = source[1];
  return {
      pack_pair<__nv_bfloat16>(low.x, low.y), pack_pair<__nv_bfloat16>(low.z, low.w),
      pack_pair<__nv_bfloat16>(high.x, high.y), pack_pair<__nv_bfloat16>(high.z, high.w)};
}

/// The fragments of 16 rows from `first_row` on: a[step] for k = 16 step ...; rows past the slab's
/// end repeat its last one.
__device__ __forceinline__ void load_row_fragments(
    const SlabView& slab, int64_t bank, int64_t first_row, uint32_t (&a)[kHeadDim / 16][4]) {
  const int lane = threadIdx.x % 32;
  const std::byte* base = slab.data + bank * slab.bank_bytes;
  uint4 halves[2][kHeadDim / 32];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t idx = min(first_row + half * 8 + lane / 4, slab.capacity_rows - 1);
#pragma unroll
    for (int block = 0; block < kHeadDim / 32; ++block) {
      halves[half][block] =
          load_row_values(slab.dtype, base + idx * slab.row_bytes, block * 32 + lane % 4 * 8);
    }
  }
#pragma unroll
  for (int block = 0; block < kHeadDim / 32; ++block) {
    const uint4& low = halves[0][block];
    const uint4& high = halves[1][block];
    a[2 * block][0] = low.x;
    a[2 * block][1] = high.x;
    a[2 * block][2] = low.y;
    a[2 * block][3] = high.y;
    a[2 * block + 1][0] = low.z;
    a[2 * block + 1][1] = high.z;
    a[2 * block + 1][2] = low.w;
    a[2 * block + 1][3] = high.w;
  }
}

/// Scores of kM * 16 rows against one query in shared memory: score[m][half] is that of row
/// 16 m + 8 half + lane / 4, in each of the four lanes. Heads are added in a fixed order.
template <int kM>
__device__ __forceinline__ void score_rows(
    const uint32_t (&a)[kM][kHeadDim / 16][4], const __nv_bfloat16* query, const float* weights,
    float (&score)[kM][2]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < kM; ++m) score[m][0] = score[m][1] = 0;
#pragma unroll
  for (int n = 0; n < kHeadsMax; n += 16) {
    float match[kM][2][4] = {};
#pragma unroll
    for (int block = 0; block < kHeadDim / 32; ++block) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const uint4 b = *reinterpret_cast<const uint4*>(
            query + (n + j * 8 + lane / 4) * kQueryStride + block * 32 + lane % 4 * 8);
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          mma_m16n8k16<__nv_bfloat16>(match[m][j], a[m][2 * block], b.x, b.y);
          mma_m16n8k16<__nv_bfloat16>(match[m][j], a[m][2 * block + 1], b.z, b.w);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float2 w = *reinterpret_cast<const float2*>(weights + n + j * 8 + lane % 4 * 2);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          score[m][half] += fmaxf(match[m][j][2 * half], 0.0f) * w.x;
          score[m][half] += fmaxf(match[m][j][2 * half + 1], 0.0f) * w.y;
        }
      }
    }
  }
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      score[m][half] += __shfl_xor_sync(0xffffffff, score[m][half], 1);
      score[m][half] += __shfl_xor_sync(0xffffffff, score[m][half], 2);
    }
  }
}

/// Starts copying the heads and weights of one row's query.
__device__ __forceinline__ void load_query(
    const IndexParams& params, int row, __nv_bfloat16* query, float* weights) {
  const __nv_bfloat16* source = params.queries + int64_t{row} * kHeadsMax * kHeadDim;
#pragma unroll
  for (int i = 0; i < kHeadsMax * kHeadDim / 8 / kThreads; ++i) {
    const int idx = i * kThreads + threadIdx.x;
    const int head = idx / (kHeadDim / 8);
    const int part = idx % (kHeadDim / 8);
    copy_async_16(shared_address(query + head * kQueryStride + part * 8), source + idx * 8, true);
  }
  if (threadIdx.x < kHeadsMax / 4) {
    copy_async_16(
        shared_address(weights + threadIdx.x * 4),
        params.weights + row * params.weights_stride + threadIdx.x * 4, true);
  }
}

__device__ __forceinline__ int visible_count(const IndexSelectArgs& args, int row) {
  return (args.step.pos[row] + 1) / static_cast<int>(args.ratio);
}

// Grid: (kDecodeCtas, rows); a warp scores 16 rows at a time.
__global__ __launch_bounds__(kThreads) void score_decode_kernel(
    const __grid_constant__ IndexParams params) {
  __shared__ __align__(16) __nv_bfloat16 query[kHeadsMax * kQueryStride];
  __shared__ __align__(16) float weights[kHeadsMax];
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const IndexSelectArgs& args = params.args;
  const int row = blockIdx.y;
  const int count = visible_count(args, row);
  if (count <= args.top_k) return;
  if (static_cast<int>(blockIdx.x) * kWarps * 16 >= count) return;
  load_query(params, row, query, weights);
  copy_async_commit();
  const int bank = args.step.segments[args.step.segment[row]].bank;
  const int lane = threadIdx.x % 32;
  float* scores = params.scores + row * params.score_stride;
  bool ready = false;
  for (int first = (blockIdx.x * kWarps + threadIdx.x / 32) * 16;;
       first += kDecodeCtas * kWarps * 16) {
    uint32_t a[1][kHeadDim / 16][4];
    if (first < count) load_row_fragments(args.rows, bank, first, a[0]);
    if (!ready) {  // the first rows are under way before the query is waited for
      copy_async_wait<0>();
      __syncthreads();
      ready = true;
    }
    if (first >= count) break;
    float score[1][2];
    score_rows<1>(a, query, weights, score);
    if (lane % 4 < 2) {
      const int idx = first + lane % 4 * 8 + lane / 4;
      if (idx < count) scores[idx] = lane % 4 == 0 ? score[0][0] : score[0][1];
    }
  }
}

// Grid: (row tiles, tiles of kQueryTile queries) of one bank. A CTA keeps its rows in registers, 32
// a warp, and streams the queries past them.
__global__ __launch_bounds__(kThreads, 1) void score_prefill_kernel(
    const __grid_constant__ IndexParams params) {
  constexpr int kM = 2;
  constexpr int kStages = 3;
  extern __shared__ __align__(128) std::byte smem[];
  auto* query = reinterpret_cast<__nv_bfloat16*>(smem);
  auto* weights = reinterpret_cast<float*>(smem + kStages * kHeadsMax * kQueryStride * 2);
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const IndexSelectArgs& args = params.args;
  const int query_begin = blockIdx.y * kQueryTile;
  const int query_end = min(query_begin + kQueryTile, params.block_rows);
  const int tile_first = blockIdx.x * kWarps * kM * 16;
  // Positions ascend within the block, so the last query sees the most rows.
  const int count_max = visible_count(args, params.block_first_row + query_end - 1);
  if (tile_first >= count_max || count_max <= args.top_k) return;

  const auto start_load = [&](int q) {
    if (q < query_end) {
      const int stage = (q - query_begin) % kStages;
      load_query(
          params, params.block_first_row + q, query + stage * kHeadsMax * kQueryStride,
          weights + stage * kHeadsMax);
    }
    copy_async_commit();
  };
  for (int i = 0; i < kStages - 1; ++i) start_load(query_begin + i);
  const int lane = threadIdx.x % 32;
  const int first = tile_first + threadIdx.x / 32 * kM * 16;
  uint32_t a[kM][kHeadDim / 16][4];
#pragma unroll
  for (int m = 0; m < kM; ++m) {
    load_row_fragments(args.rows, params.rows_bank, first + m * 16, a[m]);
  }
  for (int q = query_begin; q < query_end; ++q) {
    copy_async_wait<kStages - 2>();
    __syncthreads();
    start_load(q + kStages - 1);
    const int stage = (q - query_begin) % kStages;
    const int count = visible_count(args, params.block_first_row + q);
    if (first >= count) continue;
    float score[kM][2];
    score_rows<kM>(a, query + stage * kHeadsMax * kQueryStride, weights + stage * kHeadsMax, score);
    // Lane 4 g + j stores row 8 j + g of the warp's 32.
    const int j = lane % 4;
    const float own = j == 0   ? score[0][0]
                      : j == 1 ? score[0][1]
                      : j == 2 ? score[1][0]
                               : score[1][1];
    const int idx = first + j * 8 + lane / 4;
    if (idx < count) params.scores[q * params.score_stride + idx] = own;
  }
}

// Grid: (heads, rows), a thread for each value.
__global__ __launch_bounds__(cuda::kFinishRowMax) void finish_exact_kernel(
    const __grid_constant__ IndexParams params) {
  __shared__ float shared[cuda::kFinishRowMax];
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const IndexSelectArgs& args = params.args;
  const int row = blockIdx.y;
  const int head = blockIdx.x;
  const auto head_dim = static_cast<int>(args.head_dim);
  const bool active = static_cast<int>(threadIdx.x) < head_dim;
  float value = 0;
  if (active) {
    value = params.raw_queries
                .data[row * params.raw_queries.stride + int64_t{head} * head_dim + threadIdx.x];
  }
  value = cuda::finish_row_value(
      value, head_dim, args.rotary, args.step.pos[row], args.rounding, shared);
  if (active) {
    params.exact_queries[(row * args.num_heads + head) * head_dim + threadIdx.x] = value;
  }
  if (threadIdx.x == 0) {
    const float scale = 1.0f / sqrtf(static_cast<float>(head_dim * args.num_heads));
    params.weights[row * params.weights_stride + head] =
        params.raw_weights.data[row * params.raw_weights.stride + head] * scale;
  }
}

// Any shape, in float32. Grid: (CTAs, rows); a warp scores a row at a time.
__global__ __launch_bounds__(kThreads) void score_exact_kernel(
    const __grid_constant__ IndexParams params) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const IndexSelectArgs& args = params.args;
  const int row = params.block_first_row + blockIdx.y;
  const int count = visible_count(args, row);
  if (count <= args.top_k) return;
  const int lane = threadIdx.x % 32;
  const auto num_heads = static_cast<int>(args.num_heads);
  const auto head_dim = static_cast<int>(args.head_dim);
  const int bank = args.step.segments[args.step.segment[row]].bank;
  const std::byte* rows = args.rows.data + bank * args.rows.bank_bytes;
  const float* queries = params.exact_queries + int64_t{row} * num_heads * head_dim;
  for (int idx = blockIdx.x * kWarps + threadIdx.x / 32; idx < count; idx += gridDim.x * kWarps) {
    float score = 0;
    for (int head = 0; head < num_heads; ++head) {
      float match = 0;
      for (int i = lane; i < head_dim; i += 32) {
        const float value = cuda::load_value(args.rows.dtype, rows + idx * args.rows.row_bytes, i);
        match = __fmaf_rn(value, queries[head * head_dim + i], match);
      }
      match = cuda::warp_sum(match);
      score += fmaxf(match, 0.0f) * params.weights[row * params.weights_stride + head];
    }
    if (lane == 0) params.scores[blockIdx.y * params.score_stride + idx] = score;
  }
}

/// Whether the tensor cores score: FP4 values of the models' shape.
bool has_fast_scores(const IndexSelectArgs& args) {
  return args.rounding == RowRounding::kHadamardFp4 && args.head_dim == kHeadDim &&
         args.num_heads <= kHeadsMax;
}

Status select_block(const Exec& exec, const IndexParams& params) {
  const IndexSelectArgs& args = params.args;
  const int64_t first = params.block_first_row;
  const SelectTopKArgs select = {
      {params.scores, params.block_rows, params.score_stride, params.score_stride},
      args.step.pos + first,
      args.ratio,
      {args.selection.data + first * args.selection.stride, params.block_rows, args.top_k,
       args.selection.stride}};
  return select_top_k_cuda(exec, select);
}

/// Projects and finishes the queries of all rows.
Status make_queries(const Exec& exec, IndexParams& params) {
  const IndexSelectArgs& args = params.args;
  const int64_t n = args.step.num_rows;
  const int64_t query_dim = args.num_heads * args.head_dim;
  params.weights_stride = static_cast<int>(std::max<int64_t>(args.num_heads, kHeadsMax));
  params.weights = exec.scratch->take<float>(n * params.weights_stride);
  if (!has_fast_scores(args)) {
    params.exact_queries = exec.scratch->take<float>(n * query_dim);
  } else {
    params.queries = exec.scratch->take<__nv_bfloat16>(n * kHeadsMax * kHeadDim);
  }
  Scratch::Frame frame(*exec.scratch);
  const Rows queries = {exec.scratch->take<float>(n * query_dim), n, query_dim, query_dim};
  const Rows weights = {
      exec.scratch->take<float>(n * args.num_heads), n, args.num_heads, args.num_heads};
  if (cuda::is_prefill(exec)) {
    TANDEM_TRY(linear(exec, {args.q_latent, args.q_b, queries}));
    TANDEM_TRY(linear(exec, {args.x, args.weights, weights}));
  } else {
    const std::array<cuda::GemvPart, 2> parts = {
        {{args.q_latent, args.q_b, queries}, {args.x, args.weights, weights}}};
    TANDEM_TRY(cuda::gemv(exec, parts));
  }
  params.raw_queries = queries;
  params.raw_weights = weights;
  if (!has_fast_scores(args)) {
    return cuda::launch(
        "finish_queries", finish_exact_kernel,
        dim3(static_cast<unsigned>(args.num_heads), static_cast<unsigned>(n)),
        dim3(static_cast<unsigned>((args.head_dim + 31) / 32 * 32)), 0, exec.stream, params);
  }
  return cuda::launch(
      "finish_queries", finish_queries_kernel, dim3(kHeadsMax / kWarps, static_cast<unsigned>(n)),
      dim3(kThreads), 0, exec.stream, params);
}

Status select_decode(const Exec& exec, IndexParams params) {
  const IndexSelectArgs& args = params.args;
  const int64_t n = args.step.num_rows;
  // Sized by the slab, not by the position, so that a recorded step stays right as it moves on.
  params.score_stride = args.rows.capacity_rows;
  params.scores = exec.scratch->take<float>(n * params.score_stride);
  params.block_first_row = 0;
  params.block_rows = static_cast<int>(n);
  const dim3 grid(kDecodeCtas, static_cast<unsigned>(n));
  if (!has_fast_scores(args)) {
    TANDEM_TRY(cuda::launch(
        "index scores", score_exact_kernel, grid, dim3(kThreads), 0, exec.stream, params));
  } else {
    TANDEM_TRY(cuda::launch(
        "index scores", score_decode_kernel, grid, dim3(kThreads), 0, exec.stream, params));
  }
  return select_block(exec, params);
}

/// One segment, in blocks of as many queries as the score buffer holds.
Status select_segment(const Exec& exec, IndexParams params, const Segment& segment) {
  const IndexSelectArgs& args = params.args;
  const int64_t count_max = (segment.first_pos + segment.num_rows) / args.ratio;
  Scratch::Frame frame(*exec.scratch);
  params.score_stride = (std::max<int64_t>(count_max, 1) + 31) / 32 * 32;
  const int64_t rows_max = std::clamp<int64_t>(
      kScoreBytesMax / (params.score_stride * 4) / kQueryTile * kQueryTile, kQueryTile,
      (segment.num_rows + kQueryTile - 1) / kQueryTile * kQueryTile);
  params.scores = exec.scratch->take<float>(rows_max * params.score_stride);
  params.rows_bank = segment.bank;
  for (int64_t begin = 0; begin < segment.num_rows; begin += rows_max) {
    const int64_t count = std::min<int64_t>(rows_max, segment.num_rows - begin);
    params.block_first_row = static_cast<int>(segment.first_row + begin);
    params.block_rows = static_cast<int>(count);
    const int64_t visible = (segment.first_pos + begin + count) / args.ratio;
    if (visible > args.top_k) {
      if (!has_fast_scores(args)) {
        TANDEM_TRY(cuda::launch(
            "index scores", score_exact_kernel, dim3(64, static_cast<unsigned>(count)),
            dim3(kThreads), 0, exec.stream, params));
      } else {
        constexpr int kTileRows = kWarps * 32;
        constexpr size_t kSharedBytes = 3 * kHeadsMax * (kQueryStride * 2 + 4);
        const dim3 grid(
            static_cast<unsigned>((visible + kTileRows - 1) / kTileRows),
            static_cast<unsigned>((count + kQueryTile - 1) / kQueryTile));
        TANDEM_TRY(cuda::launch(
            "index scores", score_prefill_kernel, grid, dim3(kThreads), kSharedBytes, exec.stream,
            params));
      }
    }
    TANDEM_TRY(select_block(exec, params));
  }
  return {};
}

}  // namespace

Status index_select_cuda(const Exec& exec, const IndexSelectArgs& args) {
  TANDEM_REQUIRE(
      args.head_dim % 2 == 0 && args.head_dim <= cuda::kFinishRowMax,
      str_cat(
          "index_select: head_dim is ", args.head_dim, ", on CUDA even and at most ",
          cuda::kFinishRowMax));
  int64_t count_max = 0;
  for (int64_t i = 0; i < args.step.num_segments; ++i) {
    const Segment& segment = args.step.host_segments[i];
    count_max = std::max<int64_t>(count_max, (segment.first_pos + segment.num_rows) / args.ratio);
  }
  Scratch::Frame frame(*exec.scratch);
  IndexParams params = {};
  params.args = args;
  if (count_max <= args.top_k) {  // every row takes all that it sees
    params.block_rows = static_cast<int>(args.step.num_rows);
    return select_block(exec, params);
  }
  TANDEM_TRY(make_queries(exec, params));
  if (!cuda::is_prefill(exec)) return select_decode(exec, params);
  for (int64_t i = 0; i < args.step.num_segments; ++i) {
    if (args.step.host_segments[i].num_rows > 0) {
      TANDEM_TRY(select_segment(exec, params, args.step.host_segments[i]));
    }
  }
  return {};
}

}  // namespace tandem::detail
