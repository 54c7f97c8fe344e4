#include <cuda_runtime.h>

#include <array>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/linear/gemv_parts.cuh"
#include "kernels/linear/pack_rows.h"
#include "kernels/linear/tile_dot.cuh"

namespace tandem::cuda {
namespace {

// Grid: CTAs that stay; each takes a contiguous range of groups of tiles. With one activation row
// the CTA packs it itself, into shared memory; more, up to kRows, are packed before.
template <DType kDType, int kRows>
__global__ __launch_bounds__(kGemvThreads, 2) void gemv_int8_kernel(
    const __grid_constant__ GemvKernelArgs args) {
  constexpr int kQuads = num_quads(kRows);
  extern __shared__ __align__(128) std::byte dynamic[];
  __shared__ float sums[2][kGemvWarps * kTileRows * kRows];
  auto* tables = reinterpret_cast<DotTables*>(dynamic);
  std::byte* shared_row = dynamic + table_bytes<kDType>();

  const int warp = threadIdx.x / kWarpLanes;
  const int lane = threadIdx.x % kWarpLanes;
  const auto num_ctas = static_cast<int64_t>(gridDim.x);
  int group = static_cast<int>(blockIdx.x * static_cast<int64_t>(args.num_groups) / num_ctas);
  const int end =
      static_cast<int>((blockIdx.x + 1) * static_cast<int64_t>(args.num_groups) / num_ctas);
  if constexpr (needs_tables<kDType>()) {
    fill_tables<kGemvThreads>(*tables);
    __syncthreads();
  }
  pdl_wait();
  pdl_launch_dependents();

  const ColRange cols = k_range(args.cols, args.k_warps, warp % args.k_warps, dot_grain(kDType));
  const float* packed_from = nullptr;
  for (int buffer = 0; group < end; ++group, buffer ^= 1) {
    const GemvKernelPart& part = args.parts[part_of(args, group)];
    CodeRows rows;
    if constexpr (kRows == 1) {
      rows = code_rows_at(shared_row, 1, args.cols);
      if (packed_from != part.x) {
        __syncthreads();
        pack_code_row<kGemvThreads>(part.x, rows, 0);
        packed_from = part.x;
        __syncthreads();
      }
    } else {
      rows = code_rows_at(const_cast<std::byte*>(part.packed), args.num_rows, args.cols);
    }
    const auto x = code_lane<kQuads>(rows, kRows == 1 ? 1 : args.num_rows);

    const int tile = (group - part.first_group) * (kGemvWarps / args.k_warps) + warp / args.k_warps;
    const int low = min(tile * kTileRows + lane / 4, part.rows - 1);
    const int high = min(tile * kTileRows + lane / 4 + 8, part.rows - 1);
    float acc[kQuads][2] = {};
    tile_dot<kDType, kQuads>(
        part.weight + low * part.row_bytes, part.weight + high * part.row_bytes, args.cols,
        cols.begin, cols.end, x, acc, tables);
    store_tile<kQuads, kRows>(acc, sums[buffer] + warp * kTileRows * kRows);
    __syncthreads();
    store_group<kRows>(args, part, group, sums[buffer]);
  }
}

/// A single row is packed by each CTA, unless it is too long for that.
bool packs_row(const Exec& exec, const GemvKernelArgs& args) {
  return args.num_rows == 1 &&
         static_cast<int64_t>(sizeof(DotTables)) + code_rows_bytes(1, args.cols) <=
             shared_bytes_max(exec);
}

template <DType kDType, int kRows>
Status launch_kernel(const Exec& exec, const GemvKernelArgs& args, unsigned num_ctas) {
  const size_t row_bytes = kRows == 1 ? static_cast<size_t>(code_rows_bytes(1, args.cols)) : 0;
  return launch(
      "gemv_int8", gemv_int8_kernel<kDType, kRows>, num_ctas, kGemvThreads,
      table_bytes<kDType>() + row_bytes, exec.stream, args);
}

template <DType kDType>
Status launch_rows(const Exec& exec, const GemvKernelArgs& args, unsigned num_ctas) {
  if (packs_row(exec, args)) return launch_kernel<kDType, 1>(exec, args, num_ctas);
  if (args.num_rows <= 4) return launch_kernel<kDType, 4>(exec, args, num_ctas);
  if (args.num_rows <= 8) return launch_kernel<kDType, 8>(exec, args, num_ctas);
  return launch_kernel<kDType, 16>(exec, args, num_ctas);
}

Status launch_dtype(const Exec& exec, DType dtype, const GemvKernelArgs& args, unsigned num_ctas) {
  switch (dtype) {
    case DType::kQ2_K: return launch_rows<DType::kQ2_K>(exec, args, num_ctas);
    case DType::kQ4_K: return launch_rows<DType::kQ4_K>(exec, args, num_ctas);
    case DType::kIQ2_XXS: return launch_rows<DType::kIQ2_XXS>(exec, args, num_ctas);
    case DType::kMXFP4: return launch_rows<DType::kMXFP4>(exec, args, num_ctas);
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ8_0:
    case DType::kQ6_K:
    case DType::kI32: break;
  }
  TANDEM_UNREACHABLE();
}

}  // namespace

Status gemv_int8(const Exec& exec, std::span<const GemvPart> parts) {
  GemvKernelArgs args = {};
  const unsigned num_ctas = plan_gemv(parts, 2 * num_sms(), args);
  const Scratch::Frame frame(*exec.scratch);
  if (!packs_row(exec, args)) {
    std::array<ConstRows, kGemvPartsMax> xs;
    std::array<std::byte*, kGemvPartsMax> packed = {};
    for (size_t i = 0; i < parts.size(); ++i) xs[i] = parts[i].x;
    TANDEM_TRY(pack_code_rows(exec, std::span(xs.data(), parts.size()), packed));
    for (size_t i = 0; i < parts.size(); ++i) args.parts[i].packed = packed[i];
  }
  return launch_dtype(exec, parts[0].weight.dtype, args, num_ctas);
}

}  // namespace tandem::cuda
