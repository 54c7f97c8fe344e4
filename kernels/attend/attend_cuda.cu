// Attention of all heads of one query over one list of rows that are key and value at once. The
// heads are the M dimension of the tensor-core tiles, so one query is enough to fill them:
//   S [heads, tile] = Q [heads, 512] R^T,  P = softmax,  O [heads, 512] += P [heads, tile] R.
// A query's list is its window, oldest first, then its compressed rows, cut in tiles of kTile rows.
// Prefill: one CTA for all heads and the whole list. Decode: the tiles are shared out over kSplits
// CTAs for each 16 heads, and a second kernel adds the parts in order. Both cuts depend on the
// query's own position only.

#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/attend/attend_any.h"
#include "kernels/attend/attend_impl.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/regime.h"

namespace tandem::detail {
namespace {

using cuda::copy_async_16;
using cuda::copy_async_commit;
using cuda::copy_async_wait;
using cuda::load_matrix_x4;
using cuda::load_matrix_x4_transposed;
using cuda::mma_m16n8k16;
using cuda::pack_pair;
using cuda::shared_address;

constexpr int kHeadDim = 512;
constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;
constexpr int kRowStride = kHeadDim + 8;  // padded so that 8 rows of a matrix are in 8 bank groups
constexpr int kSplits = 16;
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kScoreMin = -1e30f;  // below every score, and its difference with itself is 0

struct AttendParams {
  AttendArgs args;
  const void* step_rows;  // [n, kHeadDim] of the 16-bit type, or null: read args.kv_row
  float* part_out;        // decode: [n, num_heads, kSplits, kHeadDim]
  float2* part_stats;     // decode: [n, num_heads, kSplits]: largest score (base 2), sum
};

template <int kHeads, int kTile, int kStages>
struct Layout {
  static constexpr int kQ = 0;
  static constexpr int kRows = kQ + kHeads * kRowStride * 2;
  static constexpr int kP = kRows + kStages * kTile * kRowStride * 2;
  static constexpr int kPStride = kTile + 8;
  static constexpr int kBias = kP + kHeads * kPStride * 2;       // [kStages][kTile] f32
  static constexpr int kPartial = kBias + kStages * kTile * 4;   // [kWarps][kHeads] f32
  static constexpr int kAlpha = kPartial + kWarps * kHeads * 4;  // [kHeads] f32
  static constexpr int kMax = kAlpha + kHeads * 4;               // [kHeads] f32
  static constexpr int kSinCos = kMax + kHeads * 4;              // [kHeadDim / 2] float2
  static constexpr int kBytes = kSinCos + kHeadDim / 2 * 8;
};

/// The list of one query.
struct RowList {
  int pos, window_rows, total, bank, first_pos, first_row;
};

__device__ __forceinline__ RowList row_list(const AttendArgs& args, int row) {
  RowList list;
  const Segment segment = args.step.segments[args.step.segment[row]];
  list.pos = args.step.pos[row];
  list.bank = segment.bank;
  list.first_pos = segment.first_pos;
  list.first_row = segment.first_row;
  list.window_rows = min(list.pos + 1, static_cast<int>(args.window));
  int compressed = 0;
  if (args.compressed_rows.data != nullptr) {
    compressed = (list.pos + 1) / static_cast<int>(args.ratio);
    if (args.selection.data != nullptr) {
      compressed = min(compressed, static_cast<int>(args.selection.cols));
    }
  }
  list.total = list.window_rows + compressed;
  return list;
}

/// Where row `idx` of the list is. Bit 0 of the address is set if the row is float32; 0: no row.
__device__ __forceinline__ uint64_t
row_address(const AttendParams& params, const RowList& list, int row, int idx) {
  const AttendArgs& args = params.args;
  if (idx >= list.total) return 0;
  const SlabView* slab = &args.window_rows;
  int64_t slab_row = 0;
  if (idx < list.window_rows) {
    const int pos = list.pos - list.window_rows + 1 + idx;
    if (pos >= list.first_pos) {
      const int64_t step_row = list.first_row + (pos - list.first_pos);
      if (params.step_rows != nullptr) {
        return reinterpret_cast<uint64_t>(params.step_rows) + step_row * kHeadDim * 2;
      }
      return reinterpret_cast<uint64_t>(args.kv_row.data + step_row * args.kv_row.stride) | 1;
    }
    slab_row = pos % args.window_rows.capacity_rows;
  } else {
    slab = &args.compressed_rows;
    slab_row = idx - list.window_rows;
    if (args.selection.data != nullptr) {
      slab_row = args.selection.data[row * args.selection.stride + slab_row];
      if (slab_row < 0) return 0;
    }
  }
  const std::byte* address = slab->data + list.bank * slab->bank_bytes + slab_row * slab->row_bytes;
  return reinterpret_cast<uint64_t>(address) | (slab->dtype == DType::kF32 ? 1 : 0);
}

/// Starts copying tile `tile_idx` of the list to shared memory, as T. Each warp copies the rows
/// whose addresses its first lanes work out.
template <class T, int kTile>
__device__ __forceinline__ void load_tile(
    const AttendParams& params, const RowList& list, int row, int tile_idx, std::byte* rows,
    float* bias) {
  constexpr int kWarpRows = kTile / kWarps;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  uint64_t own = 0;
  if (lane < kWarpRows) {
    own = row_address(params, list, row, tile_idx * kTile + warp * kWarpRows + lane);
    bias[warp * kWarpRows + lane] = own == 0 ? -INFINITY : 0.0f;
  }
#pragma unroll
  for (int i = 0; i < kWarpRows; ++i) {
    const uint64_t address = __shfl_sync(0xffffffff, own, i);
    std::byte* target = rows + (warp * kWarpRows + i) * kRowStride * 2;
    if ((address & 1) == 0) {
      const bool valid = address != 0;
      const auto* source = reinterpret_cast<const std::byte*>(
          valid ? address : uint64_t(params.args.window_rows.data));
      copy_async_16(shared_address(target + lane * 16), source + lane * 16, valid);
      copy_async_16(shared_address(target + 512 + lane * 16), source + 512 + lane * 16, valid);
    } else {
      const auto* source = reinterpret_cast<const float4*>(address - 1);
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        const float4 low = source[part * 64 + lane * 2];
        const float4 high = source[part * 64 + lane * 2 + 1];
        const uint4 packed = {
            pack_pair<T>(low.x, low.y), pack_pair<T>(low.z, low.w), pack_pair<T>(high.x, high.y),
            pack_pair<T>(high.z, high.w)};
        *reinterpret_cast<uint4*>(target + part * 512 + lane * 16) = packed;
      }
    }
  }
}

__device__ __forceinline__ float clamp_half(float value) {
  return fminf(fmaxf(value, -65504.0f), 65504.0f);
}

/// The queries of heads [first_head, first_head + kHeads) as T; zeros past num_heads.
template <class T, int kHeads>
__device__ __forceinline__ void load_queries(
    const AttendArgs& args, int row, int first_head, std::byte* target) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const float* q = args.q.data + row * args.q.stride + int64_t{first_head} * kHeadDim;
#pragma unroll 2
  for (int head = warp; head < kHeads; head += kWarps) {
    const bool valid = first_head + head < args.num_heads;
    const auto* source = reinterpret_cast<const float4*>(q + head * kHeadDim);
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      float4 value = valid ? source[part * 32 + lane] : float4{0, 0, 0, 0};
      value = {clamp_half(value.x), clamp_half(value.y), clamp_half(value.z), clamp_half(value.w)};
      *reinterpret_cast<uint2*>(target + head * kRowStride * 2 + (part * 32 + lane) * 8) = {
          pack_pair<T>(value.x, value.y), pack_pair<T>(value.z, value.w)};
    }
  }
}

/// Cosine and sine of pos * frequency, for the rotation back.
__device__ __forceinline__ void load_angles(const AttendArgs& args, int pos, float2* sin_cos) {
  for (int i = threadIdx.x; i < args.rotary.dim / 2; i += blockDim.x) {
    const float angle = static_cast<float>(pos) * args.rotary.frequencies[i];
    float sine = 0;
    float cosine = 0;
    sincosf(angle, &sine, &cosine);
    sin_cos[i] = {sine, cosine};
  }
}

__device__ __forceinline__ float2
rotate_back(float2 pair, int dim, int rotary_dim, const float2* sin_cos) {
  const int first = kHeadDim - rotary_dim;
  if (dim < first) return pair;
  const float2 angle = sin_cos[(dim - first) / 2];
  return {pair.x * angle.y + pair.y * angle.x, pair.y * angle.y - pair.x * angle.x};
}

// Grid: (splits, groups of kHeads heads, rows). 8 warps. The score tile is shared out by heads and
// rows, the output tile by dimensions: a warp owns all heads of 64 dimensions, in registers.
template <class T, int kHeads, int kTile, int kStages, bool kSplit>
__global__ __launch_bounds__(kThreads, 1) void attend_kernel(
    const __grid_constant__ AttendParams params) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  using Smem = Layout<kHeads, kTile, kStages>;
  constexpr int kHeadWarps = kHeads >= 64 ? 2 : kHeads / 16;
  constexpr int kRowWarps = kWarps / kHeadWarps;
  constexpr int kScoreM = kHeads / kHeadWarps / 16;  // fragments of a warp's score tile
  constexpr int kScoreN = kTile / kRowWarps / 8;
  constexpr int kOutM = kHeads / 16;
  constexpr int kOutN = kHeadDim / kWarps / 8;
  static_assert(kScoreM >= 1 && (kScoreN == 1 || kScoreN == 2) && kOutN == 8);

  extern __shared__ __align__(128) std::byte smem[];
  float* bias = reinterpret_cast<float*>(smem + Smem::kBias);
  float* partial = reinterpret_cast<float*>(smem + Smem::kPartial);
  float* alpha = reinterpret_cast<float*>(smem + Smem::kAlpha);
  float* largest = reinterpret_cast<float*>(smem + Smem::kMax);
  float2* sin_cos = reinterpret_cast<float2*>(smem + Smem::kSinCos);
  const uint32_t smem_q = shared_address(smem + Smem::kQ);
  const uint32_t smem_rows = shared_address(smem + Smem::kRows);
  const uint32_t smem_p = shared_address(smem + Smem::kP);

  const AttendArgs& args = params.args;
  const int row = blockIdx.z;
  const int first_head = blockIdx.y * kHeads;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int group = lane / 4;
  const int pair = lane % 4;
  const int warp_head = (warp % kHeadWarps) * kScoreM * 16;
  const int row_warp = warp / kHeadWarps;
  const int warp_row = row_warp * kScoreN * 8;

  const RowList list = row_list(args, row);
  const int num_tiles = (list.total + kTile - 1) / kTile;
  const int tiles_per_split = kSplit ? (num_tiles + kSplits - 1) / kSplits : num_tiles;
  const int tile_begin = kSplit ? blockIdx.x * tiles_per_split : 0;
  const int tile_end = min(num_tiles, tile_begin + tiles_per_split);
  if (tile_begin >= tile_end) return;

  load_tile<T, kTile>(params, list, row, tile_begin, smem + Smem::kRows, bias);
  copy_async_commit();
  load_queries<T, kHeads>(args, row, first_head, smem + Smem::kQ);
  if (!kSplit) load_angles(args, list.pos, sin_cos);

  float out[kOutM][kOutN][4] = {};
  float max_score[kScoreM][2];
  float sum[kScoreM][2];
#pragma unroll
  for (int m = 0; m < kScoreM; ++m) {
    max_score[m][0] = max_score[m][1] = kScoreMin;
    sum[m][0] = sum[m][1] = 0;
  }
  const float scale = kLog2E * rsqrtf(static_cast<float>(kHeadDim));

  for (int tile = tile_begin; tile < tile_end; ++tile) {
    const int stage = (tile - tile_begin) % kStages;
    if (kStages > 1 && tile + 1 < tile_end) {
      const int next = (stage + 1) % kStages;
      load_tile<T, kTile>(
          params, list, row, tile + 1, smem + Smem::kRows + next * kTile * kRowStride * 2,
          bias + next * kTile);
      copy_async_commit();
      copy_async_wait<1>();
    } else {
      copy_async_wait<0>();
    }
    __syncthreads();
    const uint32_t rows = smem_rows + stage * kTile * kRowStride * 2;

    // Scores.
    float score[kScoreM][kScoreN][4] = {};
    const uint32_t q_address =
        smem_q + ((warp_head + lane % 16) * kRowStride + (lane / 16) * 8) * 2;
    if constexpr (kScoreN == 2) {
      const uint32_t k_address =
          rows + ((warp_row + lane % 8 + lane / 16 * 8) * kRowStride + (lane / 8 % 2) * 8) * 2;
#pragma unroll 8
      for (int k = 0; k < kHeadDim; k += 16) {
        uint32_t b[4];
        load_matrix_x4(b, k_address + k * 2);
#pragma unroll
        for (int m = 0; m < kScoreM; ++m) {
          uint32_t a[4];
          load_matrix_x4(a, q_address + (m * 16 * kRowStride + k) * 2);
          mma_m16n8k16<T>(score[m][0], a, b[0], b[1]);
          mma_m16n8k16<T>(score[m][1], a, b[2], b[3]);
        }
      }
    } else {
      const uint32_t k_address = rows + ((warp_row + lane % 8) * kRowStride + (lane / 8) * 8) * 2;
#pragma unroll 4
      for (int k = 0; k < kHeadDim; k += 32) {
        uint32_t b[4];
        load_matrix_x4(b, k_address + k * 2);
#pragma unroll
        for (int m = 0; m < kScoreM; ++m) {
          uint32_t a[4];
          load_matrix_x4(a, q_address + (m * 16 * kRowStride + k) * 2);
          mma_m16n8k16<T>(score[m][0], a, b[0], b[1]);
          load_matrix_x4(a, q_address + (m * 16 * kRowStride + k + 16) * 2);
          mma_m16n8k16<T>(score[m][0], a, b[2], b[3]);
        }
      }
    }

    // Largest score of each head over this tile.
#pragma unroll
    for (int m = 0; m < kScoreM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float value = -INFINITY;
#pragma unroll
        for (int n = 0; n < kScoreN; ++n) {
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            float& s = score[m][n][2 * half + j];
            s = s * scale + bias[stage * kTile + warp_row + n * 8 + 2 * pair + j];
            value = fmaxf(value, s);
          }
        }
        value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, 1));
        value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, 2));
        if (pair == 0) partial[row_warp * kHeads + warp_head + m * 16 + half * 8 + group] = value;
      }
    }
    __syncthreads();

    // Probabilities against the running maximum.
#pragma unroll
    for (int m = 0; m < kScoreM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int head = warp_head + m * 16 + half * 8 + group;
        float value = max_score[m][half];
#pragma unroll
        for (int w = 0; w < kRowWarps; ++w) value = fmaxf(value, partial[w * kHeads + head]);
        const float shrink = exp2f(max_score[m][half] - value);
        max_score[m][half] = value;
        if (row_warp == 0 && pair == 0) alpha[head] = shrink;
        float added = 0;
#pragma unroll
        for (int n = 0; n < kScoreN; ++n) {
          const float p0 = exp2f(score[m][n][2 * half] - value);
          const float p1 = exp2f(score[m][n][2 * half + 1] - value);
          added += p0 + p1;
          *reinterpret_cast<uint32_t*>(
              smem + Smem::kP + (head * Smem::kPStride + warp_row + n * 8 + 2 * pair) * 2) =
              pack_pair<T>(p0, p1);
        }
        sum[m][half] = sum[m][half] * shrink + added;
      }
    }
    __syncthreads();

    // Output.
#pragma unroll
    for (int m = 0; m < kOutM; ++m) {
      const float shrink0 = alpha[m * 16 + group];
      const float shrink1 = alpha[m * 16 + 8 + group];
#pragma unroll
      for (int n = 0; n < kOutN; ++n) {
        out[m][n][0] *= shrink0;
        out[m][n][1] *= shrink0;
        out[m][n][2] *= shrink1;
        out[m][n][3] *= shrink1;
      }
    }
    const uint32_t p_address = smem_p + ((lane % 16) * Smem::kPStride + (lane / 16) * 8) * 2;
    const uint32_t v_address =
        rows + ((lane % 16) * kRowStride + warp * kOutN * 8 + (lane / 16) * 8) * 2;
#pragma unroll
    for (int k = 0; k < kTile; k += 16) {
      uint32_t a[kOutM][4];
#pragma unroll
      for (int m = 0; m < kOutM; ++m) {
        load_matrix_x4(a[m], p_address + (m * 16 * Smem::kPStride + k) * 2);
      }
#pragma unroll
      for (int n = 0; n < kOutN; n += 2) {
        uint32_t b[4];
        load_matrix_x4_transposed(b, v_address + (k * kRowStride + n * 8) * 2);
#pragma unroll
        for (int m = 0; m < kOutM; ++m) {
          mma_m16n8k16<T>(out[m][n], a[m], b[0], b[1]);
          mma_m16n8k16<T>(out[m][n + 1], a[m], b[2], b[3]);
        }
      }
    }
    __syncthreads();
    if (kStages == 1 && tile + 1 < tile_end) {
      load_tile<T, kTile>(params, list, row, tile + 1, smem + Smem::kRows, bias);
      copy_async_commit();
    }
  }

  // Sums over the warps that share a head, in order.
#pragma unroll
  for (int m = 0; m < kScoreM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int head = warp_head + m * 16 + half * 8 + group;
      float value = sum[m][half];
      value += __shfl_xor_sync(0xffffffff, value, 1);
      value += __shfl_xor_sync(0xffffffff, value, 2);
      if (pair == 0) partial[row_warp * kHeads + head] = value;
      if (pair == 0 && row_warp == 0) largest[head] = max_score[m][half];
    }
  }
  __syncthreads();

#pragma unroll
  for (int m = 0; m < kOutM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int local = m * 16 + half * 8 + group;
      const int head = first_head + local;
      if (head >= args.num_heads) continue;
      float total = 0;
      for (int w = 0; w < kRowWarps; ++w) total += partial[w * kHeads + local];
      const float top = largest[local];
      if constexpr (kSplit) {
        const int64_t part = (row * args.num_heads + head) * kSplits + blockIdx.x;
        if (warp == 0 && pair == 0) params.part_stats[part] = {top, total};
        float* target = params.part_out + part * kHeadDim + warp * kOutN * 8 + 2 * pair;
#pragma unroll
        for (int n = 0; n < kOutN; ++n) {
          *reinterpret_cast<float2*>(target + n * 8) = {
              out[m][n][2 * half], out[m][n][2 * half + 1]};
        }
      } else {
        const float sink = args.sinks.data[head] * kLog2E;
        const float shift = fmaxf(top, sink);
        const float factor =
            exp2f(top - shift) / (total * exp2f(top - shift) + exp2f(sink - shift));
        float* target = args.out.data + row * args.out.stride + int64_t{head} * kHeadDim;
#pragma unroll
        for (int n = 0; n < kOutN; ++n) {
          const int dim = warp * kOutN * 8 + n * 8 + 2 * pair;
          const float2 value = {out[m][n][2 * half] * factor, out[m][n][2 * half + 1] * factor};
          *reinterpret_cast<float2*>(target + dim) =
              rotate_back(value, dim, static_cast<int>(args.rotary.dim), sin_cos);
        }
      }
    }
  }
}

// Grid: (heads, rows); each thread adds four dimensions over the parts, in order.
__global__ __launch_bounds__(kHeadDim / 4) void attend_merge_kernel(
    const __grid_constant__ AttendParams params, int tile_rows) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  __shared__ float2 sin_cos[kHeadDim / 2];
  const AttendArgs& args = params.args;
  const int row = blockIdx.y;
  const int head = blockIdx.x;
  const RowList list = row_list(args, row);
  const int num_tiles = (list.total + tile_rows - 1) / tile_rows;
  const int tiles_per_split = (num_tiles + kSplits - 1) / kSplits;
  const int num_parts = (num_tiles + tiles_per_split - 1) / tiles_per_split;
  load_angles(args, list.pos, sin_cos);
  __syncthreads();

  const int64_t first_part = (row * args.num_heads + head) * kSplits;
  const float sink = args.sinks.data[head] * kLog2E;
  // Everything is read at once: what is added up comes from L2.
  float2 stats[kSplits];
  float4 parts[kSplits];
#pragma unroll
  for (int i = 0; i < kSplits; ++i) {
    if (i >= num_parts) continue;
    stats[i] = params.part_stats[first_part + i];
    parts[i] =
        reinterpret_cast<const float4*>(params.part_out + (first_part + i) * kHeadDim)[threadIdx.x];
  }
  float shift = sink;
#pragma unroll
  for (int i = 0; i < kSplits; ++i) {
    if (i < num_parts) shift = fmaxf(shift, stats[i].x);
  }
  float total = exp2f(sink - shift);
  float4 out = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < kSplits; ++i) {
    if (i >= num_parts) continue;
    const float weight = exp2f(stats[i].x - shift);
    total += stats[i].y * weight;
    const float4 part = parts[i];
    out.x += part.x * weight;
    out.y += part.y * weight;
    out.z += part.z * weight;
    out.w += part.w * weight;
  }
  const float factor = 1.0f / total;
  const int dim = threadIdx.x * 4;
  const int rotary_dim = static_cast<int>(args.rotary.dim);
  const float2 low = rotate_back({out.x * factor, out.y * factor}, dim, rotary_dim, sin_cos);
  const float2 high = rotate_back({out.z * factor, out.w * factor}, dim + 2, rotary_dim, sin_cos);
  float* target = args.out.data + row * args.out.stride + int64_t{head} * kHeadDim;
  *reinterpret_cast<float4*>(target + dim) = {low.x, low.y, high.x, high.y};
}

/// The step's rows as T, once for all the queries that read them.
template <class T>
__global__ void convert_rows_kernel(const float* rows, int64_t stride, uint2* out) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const float4 value = reinterpret_cast<const float4*>(rows + blockIdx.x * stride)[threadIdx.x];
  out[blockIdx.x * (kHeadDim / 4) + threadIdx.x] = {
      pack_pair<T>(value.x, value.y), pack_pair<T>(value.z, value.w)};
}

template <class T, int kHeads, int kTile, int kStages, bool kSplit>
Status launch(const Exec& exec, const AttendParams& params) {
  using Smem = Layout<kHeads, kTile, kStages>;
  auto* kernel = attend_kernel<T, kHeads, kTile, kStages, kSplit>;
  const auto num_heads = static_cast<unsigned>(params.args.num_heads);
  const dim3 grid(
      kSplit ? kSplits : 1, (num_heads + kHeads - 1) / kHeads,
      static_cast<unsigned>(params.args.step.num_rows));
  return cuda::launch("attend", kernel, grid, dim3(kThreads), Smem::kBytes, exec.stream, params);
}

template <class T>
Status attend_decode(const Exec& exec, AttendParams params) {
  constexpr int kTile = 64;
  const int64_t num_rows = params.args.step.num_rows;
  const int64_t num_parts = num_rows * params.args.num_heads * kSplits;
  Scratch::Frame frame(*exec.scratch);
  params.part_out = exec.scratch->take<float>(num_parts * kHeadDim);
  params.part_stats = exec.scratch->take<float2>(num_parts);
  TANDEM_TRY((launch<T, 16, kTile, 1, true>(exec, params)));
  const dim3 grid(static_cast<unsigned>(params.args.num_heads), static_cast<unsigned>(num_rows));
  return cuda::launch(
      "attend_merge", attend_merge_kernel, grid, dim3(kHeadDim / 4), 0, exec.stream, params, kTile);
}

template <class T>
Status attend_prefill(const Exec& exec, AttendParams params) {
  const int64_t num_rows = params.args.step.num_rows;
  Scratch::Frame frame(*exec.scratch);
  auto* step_rows = exec.scratch->take<uint2>(num_rows * (kHeadDim / 4));
  TANDEM_TRY(cuda::launch(
      "attend convert", convert_rows_kernel<T>, dim3(static_cast<unsigned>(num_rows)),
      dim3(kHeadDim / 4), 0, exec.stream, params.args.kv_row.data, params.args.kv_row.stride,
      step_rows));
  params.step_rows = step_rows;
  if (params.args.num_heads <= 16) return launch<T, 16, 64, 1, false>(exec, params);
  int device = 0;
  int smem_bytes = 0;
  TANDEM_TRY(cuda::to_status(cudaGetDevice(&device), "attend: device"));
  TANDEM_TRY(cuda::to_status(
      cudaDeviceGetAttribute(&smem_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
      "attend: device"));
  if (params.args.num_heads > 32 && smem_bytes >= Layout<64, 64, 2>::kBytes && !exec.any_chip) {
    return launch<T, 64, 64, 2, false>(exec, params);
  }
  return launch<T, 32, 32, 1, false>(exec, params);
}

template <class T>
Status attend_typed(const Exec& exec, const AttendParams& params) {
  return cuda::is_prefill(exec) ? attend_prefill<T>(exec, params) : attend_decode<T>(exec, params);
}

}  // namespace

Status attend_cuda(const Exec& exec, const AttendArgs& args) {
  if (args.head_dim != kHeadDim || exec.numerics == Numerics::kExact || args.q.stride % 4 != 0 ||
      args.kv_row.stride % 4 != 0 || args.out.stride % 4 != 0) {
    return attend_any_cuda(exec, args);
  }
  const DType window = args.window_rows.dtype;
  const DType compressed =
      args.compressed_rows.data == nullptr ? window : args.compressed_rows.dtype;
  const bool has_bf16 = window == DType::kBF16 || compressed == DType::kBF16;
  const bool has_f16 = window == DType::kF16 || compressed == DType::kF16;
  TANDEM_REQUIRE(!(has_bf16 && has_f16), "attend: one slab is F16, the other BF16");
  const AttendParams params = {args, nullptr, nullptr, nullptr};
  return has_bf16 ? attend_typed<__nv_bfloat16>(exec, params) : attend_typed<__half>(exec, params);
}

}  // namespace tandem::detail
