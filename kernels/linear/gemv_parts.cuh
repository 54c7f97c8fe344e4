#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/linear/gemv.h"

namespace tandem::cuda {

inline constexpr int kGemvThreads = 256;
inline constexpr int kGemvWarps = kGemvThreads / 32;
inline constexpr int kTileRows = 16;     // weight rows of a tile
inline constexpr int kPassRowsMax = 16;  // activation rows of a pass over the weights

/// Groups of four activation rows; see tile_dot.cuh.
constexpr int num_quads(int num_rows) {
  return (num_rows + 3) / 4;
}

/// A part as the kernels take it.
struct GemvKernelPart {
  const std::byte* weight;
  const float* x;           // one activation row, packed by the kernel
  const std::byte* packed;  // or num_rows packed rows
  float* out;
  int64_t row_bytes;
  int64_t x_stride;
  int64_t out_stride;
  int rows;         // of the weight
  int first_group;  // of this part; a group is a CTA's tiles
};

struct GemvKernelArgs {
  GemvKernelPart parts[kGemvPartsMax];
  int num_parts;
  int num_groups;
  int cols;
  int num_rows;  // activation rows
  int k_warps;   // warps that share the columns of a tile; the others take more tiles
};

/// Warps that share a tile, by the length of a row alone, so that sums have one order.
constexpr int k_warps_for(int64_t cols) {
  return cols >= 4096 ? 8 : (cols >= 2048 ? 4 : (cols >= 1024 ? 2 : 1));
}

/// The columns of k-warp `idx`: whole grains.
struct ColRange {
  int begin;
  int end;
};
__host__ __device__ constexpr ColRange k_range(int cols, int k_warps, int idx, int grain) {
  const int num_grains = (cols + grain - 1) / grain;
  const int per_warp = (num_grains + k_warps - 1) / k_warps;
  const int begin = idx * per_warp * grain;
  const int end = begin + per_warp * grain;
  return {begin < cols ? begin : cols, end < cols ? end : cols};
}

/// The launches behind gemv(): parts of one weight type, at most kPassRowsMax rows.
Status gemv_q8_0(const Exec& exec, std::span<const GemvPart> parts);
Status gemv_int8(const Exec& exec, std::span<const GemvPart> parts);
Status gemv_f16(const Exec& exec, std::span<const GemvPart> parts);
Status gemv_exact(const Exec& exec, std::span<const GemvPart> parts);

/// Fills the kernel's parts, all but `packed`, and gives the grid's size, at most `ctas_max`.
unsigned plan_gemv(std::span<const GemvPart> parts, int ctas_max, GemvKernelArgs& args);

/// Streaming multiprocessors of the current device; asked once for each thread.
int num_sms();

/// Shared memory that a CTA can have on the current device, what the system keeps not counted.
int64_t shared_bytes_max(const Exec& exec);

__device__ __forceinline__ int part_of(const GemvKernelArgs& args, int group) {
  int idx = 0;
  while (idx + 1 < args.num_parts && group >= args.parts[idx + 1].first_group) ++idx;
  return idx;
}

/// Sums the k-warps' tiles in order and stores them. All threads; `sums` is
/// [kGemvWarps][kTileRows][kCols] in shared memory, as the warps wrote it before a barrier.
template <int kCols>
__device__ __forceinline__ void store_group(
    const GemvKernelArgs& args, const GemvKernelPart& part, int group, const float* sums) {
  const int tiles = kGemvWarps / args.k_warps;
  const int first = (group - part.first_group) * tiles * kTileRows;
  for (int i = threadIdx.x; i < tiles * kTileRows * args.num_rows; i += kGemvThreads) {
    const int t = i / (tiles * kTileRows);
    const int row = i % (tiles * kTileRows);
    if (first + row >= part.rows) continue;
    const int warp = row / kTileRows * args.k_warps;
    float sum = 0;
    for (int k = 0; k < args.k_warps; ++k) {
      sum += sums[((warp + k) * kTileRows + row % kTileRows) * kCols + t];
    }
    part.out[t * part.out_stride + first + row] = sum;
  }
}

}  // namespace tandem::cuda
