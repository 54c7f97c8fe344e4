#include <cuda_runtime.h>

#include <array>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/linear/gemv_parts.cuh"
#include "kernels/linear/pack_rows.h"
#include "kernels/linear/tile_dot.cuh"

namespace tandem::cuda {
namespace {

constexpr int kGrain = 128;

// As gemv_int8_kernel, for F16 weights and activations split in two f16 parts.
template <int kCols8, bool kOneRow>
__global__ __launch_bounds__(kGemvThreads, 2) void gemv_f16_kernel(
    const __grid_constant__ GemvKernelArgs args) {
  constexpr int kCols = kOneRow ? 1 : 8 * kCols8;
  extern __shared__ __align__(16) std::byte shared_row[];
  __shared__ float sums[2][kGemvWarps * kTileRows * kCols];

  const int warp = threadIdx.x / kWarpLanes;
  const int lane = threadIdx.x % kWarpLanes;
  const auto num_ctas = static_cast<int64_t>(gridDim.x);
  int group = static_cast<int>(blockIdx.x * static_cast<int64_t>(args.num_groups) / num_ctas);
  const int end =
      static_cast<int>((blockIdx.x + 1) * static_cast<int64_t>(args.num_groups) / num_ctas);
  if (warp == 0 && group < end) prefetch_group(args, args.parts[part_of(args, group)], group);
  pdl_wait();
  pdl_launch_dependents();

  const ColRange cols = k_range(args.cols, args.k_warps, warp % args.k_warps, kGrain);
  const float* packed_from = nullptr;
  for (int buffer = 0; group < end; ++group, buffer ^= 1) {
    const GemvKernelPart& part = args.parts[part_of(args, group)];
    if (warp == 0 && group + 1 < end) {
      prefetch_group(args, args.parts[part_of(args, group + 1)], group + 1);
    }
    SplitRows rows;
    if constexpr (kOneRow) {
      rows = split_rows_at(shared_row, 1, args.cols);
      if (packed_from != part.x) {
        __syncthreads();
        pack_split_row<kGemvThreads>(part.x, rows, 0);
        packed_from = part.x;
        __syncthreads();
      }
    } else {
      rows = split_rows_at(const_cast<std::byte*>(part.packed), args.num_rows, args.cols);
    }
    const SplitLane<kCols8> x = split_lane<kCols8>(rows, kOneRow ? 1 : args.num_rows);

    const int tile = (group - part.first_group) * (kGemvWarps / args.k_warps) + warp / args.k_warps;
    const int low = min(tile * kTileRows + lane / 4, part.rows - 1);
    const int high = min(tile * kTileRows + lane / 4 + 8, part.rows - 1);
    float acc[kCols8][4] = {};
    tile_dot_f16<kCols8>(
        part.weight + low * part.row_bytes, part.weight + high * part.row_bytes, cols.begin,
        cols.end, x, acc);

    float* to = sums[buffer] + (warp * kTileRows + lane / 4) * kCols;
    if constexpr (kOneRow) {
      if (lane % 4 == 0) {
        to[0] = acc[0][0] * rows.scale[0];
        to[8] = acc[0][2] * rows.scale[0];
      }
    } else {
#pragma unroll
      for (int c = 0; c < kCols8; ++c) {
        for (int i = 0; i < 2; ++i) {
          const int col = 8 * c + lane % 4 * 2 + i;
          const float scale = col < args.num_rows ? rows.scale[col] : 0.0f;
          to[col] = acc[c][i] * scale;
          to[8 * kCols + col] = acc[c][2 + i] * scale;
        }
      }
    }
    __syncthreads();
    store_group<kCols>(args, part, group, sums[buffer]);
  }
}

template <int kCols8, bool kOneRow>
Status launch_kernel(const Exec& exec, const GemvKernelArgs& args, unsigned num_ctas) {
  const size_t shared_bytes = kOneRow ? static_cast<size_t>(split_rows_bytes(1, args.cols)) : 0;
  return launch(
      "gemv_f16", gemv_f16_kernel<kCols8, kOneRow>, num_ctas, kGemvThreads, shared_bytes,
      exec.stream, args);
}

}  // namespace

Status gemv_f16(const Exec& exec, std::span<const GemvPart> parts) {
  GemvKernelArgs args = {};
  const unsigned num_ctas = plan_gemv(parts, num_sms(), args);
  const Scratch::Frame frame(*exec.scratch);
  if (args.num_rows == 1) return launch_kernel<1, true>(exec, args, num_ctas);
  std::array<ConstRows, kGemvPartsMax> xs;
  std::array<std::byte*, kGemvPartsMax> packed = {};
  for (size_t i = 0; i < parts.size(); ++i) xs[i] = parts[i].x;
  TANDEM_TRY(pack_split_rows(exec, std::span(xs.data(), parts.size()), packed));
  for (size_t i = 0; i < parts.size(); ++i) args.parts[i].packed = packed[i];
  return args.num_rows <= 8 ? launch_kernel<1, false>(exec, args, num_ctas)
                            : launch_kernel<2, false>(exec, args, num_ctas);
}

}  // namespace tandem::cuda
