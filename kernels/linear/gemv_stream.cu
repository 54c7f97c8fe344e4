// Products with Q8_0 and F16 weights. Each warp streams its share of the weights through a ring of
// its own in shared memory, so that many bytes are under way whatever the warp waits for, and in
// pieces of whole 128-byte lines. The first pieces are asked for before the kernel in front of this
// one has ended.

#include <cuda_runtime.h>

#include <array>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/linear/gemv_parts.cuh"
#include "kernels/linear/pack_rows.h"
#include "kernels/linear/split_dot.cuh"
#include "kernels/linear/tile_dot.cuh"

namespace tandem::cuda {
namespace {

constexpr int kStages = 4;
constexpr int kLineBytes = 128;  // of a row in one piece
constexpr int kScaleBytes = 8;   // of a row in one piece, Q8_0 only
constexpr int kCtasPerSm = 2;

template <DType kDType>
struct Piece {
  static_assert(kDType == DType::kQ8_0 || kDType == DType::kF16);
  static constexpr bool kHasScales = kDType == DType::kQ8_0;
  static constexpr int kCols = kHasScales ? kLineBytes : kLineBytes / 2;
  static constexpr int kBytes = kTileRows * (kLineBytes + (kHasScales ? kScaleBytes : 0));

  /// Where 16-byte unit `unit` of a row lies in its line: the rows that a load of the warp reads
  /// together then meet in different banks.
  __device__ static int place(int row, int unit) {
    return kHasScales ? unit ^ ((row & 3) << 1) : unit ^ ((row & 1) << 2);
  }
};

/// Asks for the pieces of one warp in order: along its columns, tile by tile.
template <DType kDType>
class PieceQueue {
 public:
  __device__ PieceQueue(
      const GemvKernelArgs& args, uint32_t ring, int group, int end_group, ColRange cols)
      : args_(args), group_(group), end_group_(end_group), cols_(cols), col_(cols.begin) {
    const int lane = threadIdx.x % kWarpLanes;
    first_to_ = ring + static_cast<uint32_t>(
                           lane / 8 * kLineBytes + Piece<kDType>::place(lane / 8, lane % 8) * 16);
    scale_to_ = ring + static_cast<uint32_t>(kTileRows * kLineBytes + lane * kScaleBytes);
    if (cols.begin >= cols.end) group_ = end_group;
    if (group_ < end_group_) {
      part_ = part_of(args, group_);
      start_tile();
    }
  }

  /// The next piece into the next stage, if there is one; commits in any case.
  __device__ __forceinline__ void push() {
    if (group_ < end_group_) {
      issue();
      col_ += Piece<kDType>::kCols;
      if (col_ >= cols_.end) {
        col_ = cols_.begin;
        ++group_;
        if (group_ < end_group_) {
          if (part_ + 1 < args_.num_parts && group_ >= args_.parts[part_ + 1].first_group) ++part_;
          start_tile();
        }
      }
    }
    copy_async_commit();
  }

 private:
  // Where this lane reads: a unit of each fourth row, and the scales of one row.
  __device__ __forceinline__ void start_tile() {
    const GemvKernelPart& part = args_.parts[part_];
    const int warp = threadIdx.x / kWarpLanes;
    const int lane = threadIdx.x % kWarpLanes;
    const int tile =
        (group_ - part.first_group) * (kGemvWarps / args_.k_warps) + warp / args_.k_warps;
    const int first = tile * kTileRows;
    const int64_t offset = static_cast<int64_t>(cols_.begin) * (Piece<kDType>::kHasScales ? 1 : 2);
#pragma unroll
    for (int i = 0; i < kTileRows / 4; ++i) {
      const int row = min(first + 4 * i + lane / 8, part.rows - 1);
      from_[i] = part.weight + row * part.row_bytes + offset + lane % 8 * 16;
    }
    if constexpr (Piece<kDType>::kHasScales) {
      const int row = min(first + lane % kTileRows, part.rows - 1);
      scale_from_ = part.weight + row * part.row_bytes + args_.cols + cols_.begin / 32 * 2;
    }
  }

  __device__ __forceinline__ void issue() {
    constexpr int kUnitCols = Piece<kDType>::kCols / 8;
    const uint32_t stage = static_cast<uint32_t>(stage_ * Piece<kDType>::kBytes);
    // Rows that a lane reads are four apart, so that their units lie alike.
    const bool inside = col_ + static_cast<int>(threadIdx.x % 8) * kUnitCols < cols_.end;
    if (inside) {
#pragma unroll
      for (int i = 0; i < kTileRows / 4; ++i) {
        copy_async_16(first_to_ + stage + static_cast<uint32_t>(i * 4 * kLineBytes), from_[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < kTileRows / 4; ++i) from_[i] += kLineBytes;
    if constexpr (Piece<kDType>::kHasScales) {
      if (threadIdx.x % kWarpLanes < kTileRows) copy_async_8(scale_to_ + stage, scale_from_);
      scale_from_ += kScaleBytes;
    }
    stage_ = stage_ + 1 == kStages ? 0 : stage_ + 1;
  }

  const GemvKernelArgs& args_;
  const std::byte* from_[kTileRows / 4];
  const std::byte* scale_from_ = nullptr;
  uint32_t first_to_;
  uint32_t scale_to_;
  int group_;
  int end_group_;
  ColRange cols_;
  int col_;
  int part_ = 0;
  int stage_ = 0;
};

/// The packed activations of a kernel, up to kRows rows: codes for Q8_0, split f16 for F16. Sums is
/// what a warp adds up for a tile.
template <DType kDType, int kRows>
struct Activations;

template <int kRows>
struct Activations<DType::kQ8_0, kRows> {
  static constexpr int kQuads = num_quads(kRows);
  using Sums = float[kQuads][2];
  CodeLane<kQuads> lane;

  __device__ static void pack(std::byte* to, const float* x, int cols) {
    pack_code_row<kGemvThreads>(x, code_rows_at(to, 1, cols), 0);
  }
  __device__ Activations(std::byte* packed, int num_rows, int cols)
      : lane(code_lane<kQuads>(code_rows_at(packed, num_rows, cols), num_rows)) {}

  __device__ __forceinline__ void dot(const std::byte* piece, int col, int end, Sums& acc) const {
    const int group = threadIdx.x % kWarpLanes / 4;
    const int pair = threadIdx.x % 4;
    const std::byte* rows = piece + group * kLineBytes + pair % 2 * 8;
    const int turn = (group & 3) << 1;  // Piece::place() of the rows group and group + 8
    uint2 scales[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      scales[r] = *reinterpret_cast<const uint2*>(
          piece + kTileRows * kLineBytes + (group + 8 * r) * kScaleBytes);
    }
    Sums sums = {};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (col + 32 * i >= end) break;
      const int unit = (2 * i + pair / 2) ^ turn;
      uint2 q[2];
      float d[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        q[r] = *reinterpret_cast<const uint2*>(rows + 8 * r * kLineBytes + unit * 16);
        const uint32_t word = i < 2 ? scales[r].x : scales[r].y;
        d[r] = half_bits_to_float(i % 2 == 0 ? word & 0xffffU : word >> 16);
      }
      const uint32_t a[4] = {q[0].x, q[1].x, q[0].y, q[1].y};
      add_block<kQuads>(sums, lane, col / 32 + i, a, d[0], d[1]);
    }
    add_sums<kQuads>(acc, lane, col / 32, sums);
  }
  __device__ __forceinline__ void store(const Sums& acc, float* to) const {
    store_tile<kQuads, kRows>(acc, to);
  }
};

template <int kRows>
struct Activations<DType::kF16, kRows> {
  static constexpr int kCols8 = (kRows + 7) / 8;
  using Sums = float[kCols8][4];
  SplitLane<kCols8> lane;
  const float* scale;
  int num_rows;

  __device__ static void pack(std::byte* to, const float* x, int cols) {
    pack_split_row<kGemvThreads>(x, split_rows_at(to, 1, cols), 0);
  }
  __device__ Activations(std::byte* packed, int rows, int cols)
      : lane(split_lane<kCols8>(split_rows_at(packed, rows, cols), rows)),
        scale(split_rows_at(packed, rows, cols).scale),
        num_rows(rows) {}

  __device__ __forceinline__ void dot(const std::byte* piece, int col, int end, Sums& acc) const {
    const int group = threadIdx.x % kWarpLanes / 4;
    const int pair = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (col + 32 * i >= end) break;
      const int unit = Piece<DType::kF16>::place(group, 4 * i + pair);
      uint4 a[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        a[r] = *reinterpret_cast<const uint4*>(piece + (group + 8 * r) * kLineBytes + unit * 16);
      }
      add_split<kCols8>(acc, lane, col / 32 + i, a[0], a[1]);
    }
  }
  __device__ __forceinline__ void store(const Sums& acc, float* to) const {
    const int group = threadIdx.x % kWarpLanes / 4;
#pragma unroll
    for (int c = 0; c < kCols8; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int col = 8 * c + static_cast<int>(threadIdx.x) % 4 * 2 + i;
        if (col >= kRows) continue;
        const float factor = col < num_rows ? scale[col] : 0.0f;
        to[group * kRows + col] = acc[c][i] * factor;
        to[(group + 8) * kRows + col] = acc[c][2 + i] * factor;
      }
    }
  }
};

template <DType kDType>
constexpr int64_t packed_bytes(int64_t rows, int64_t cols) {
  return kDType == DType::kQ8_0 ? code_rows_bytes(rows, cols) : split_rows_bytes(rows, cols);
}

// Grid: CTAs that stay; each takes a contiguous range of groups of tiles.
template <DType kDType, int kRows>
__global__ __launch_bounds__(kGemvThreads, 2) void gemv_stream_kernel(
    const __grid_constant__ GemvKernelArgs args) {
  extern __shared__ __align__(128) std::byte dynamic[];
  __shared__ float sums[2][kGemvWarps * kTileRows * kRows];
  const int warp = threadIdx.x / kWarpLanes;
  const auto num_ctas = static_cast<int64_t>(gridDim.x);
  int group = static_cast<int>(blockIdx.x * static_cast<int64_t>(args.num_groups) / num_ctas);
  const int end_group =
      static_cast<int>((blockIdx.x + 1) * static_cast<int64_t>(args.num_groups) / num_ctas);
  const ColRange cols =
      k_range(args.cols, args.k_warps, warp % args.k_warps, dot_grain(DType::kQ8_0));
  std::byte* ring = dynamic + warp * kStages * Piece<kDType>::kBytes;
  std::byte* own_row = dynamic + kGemvWarps * kStages * Piece<kDType>::kBytes;
  PieceQueue<kDType> queue(args, shared_address(ring), group, end_group, cols);
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) queue.push();
  pdl_wait();
  pdl_launch_dependents();

  const float* packed_from = nullptr;
  int stage = 0;
  for (int buffer = 0; group < end_group; ++group, buffer ^= 1) {
    const GemvKernelPart& part = args.parts[part_of(args, group)];
    if constexpr (kRows == 1) {
      if (packed_from != part.x) {
        __syncthreads();
        Activations<kDType, kRows>::pack(own_row, part.x, args.cols);
        packed_from = part.x;
        __syncthreads();
      }
    }
    const Activations<kDType, kRows> x(
        kRows == 1 ? own_row : const_cast<std::byte*>(part.packed), kRows == 1 ? 1 : args.num_rows,
        args.cols);
    typename Activations<kDType, kRows>::Sums acc = {};
    for (int col = cols.begin; col < cols.end; col += Piece<kDType>::kCols) {
      copy_async_wait<kStages - 2>();
      __syncwarp();  // the piece is there for every lane, and the stage before it is free
      queue.push();
      x.dot(ring + stage * Piece<kDType>::kBytes, col, cols.end, acc);
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }

    x.store(acc, sums[buffer] + warp * kTileRows * kRows);
    __syncthreads();
    store_group<kRows>(args, part, group, sums[buffer]);
  }
  copy_async_wait<0>();
}

/// Of a CTA; one that has a single row packs it there too.
template <DType kDType>
constexpr int64_t shared_bytes_for(bool packs_row, int64_t cols) {
  return kGemvWarps * kStages * Piece<kDType>::kBytes +
         (packs_row ? packed_bytes<kDType>(1, cols) : 0);
}

template <DType kDType, int kRows>
Status launch_kernel(const Exec& exec, const GemvKernelArgs& args, unsigned num_ctas) {
  const auto shared_bytes = static_cast<size_t>(shared_bytes_for<kDType>(kRows == 1, args.cols));
  return launch(
      "gemv_stream", gemv_stream_kernel<kDType, kRows>, num_ctas, kGemvThreads, shared_bytes,
      exec.stream, args);
}

template <DType kDType>
Status gemv_stream(const Exec& exec, std::span<const GemvPart> parts) {
  GemvKernelArgs args = {};
  const unsigned num_ctas = plan_gemv(parts, num_sms() * kCtasPerSm, args);
  const Scratch::Frame frame(*exec.scratch);
  if (args.num_rows == 1 && shared_bytes_for<kDType>(true, args.cols) <= shared_bytes_max(exec)) {
    return launch_kernel<kDType, 1>(exec, args, num_ctas);
  }
  std::array<ConstRows, kGemvPartsMax> xs;
  std::array<std::byte*, kGemvPartsMax> packed = {};
  for (size_t i = 0; i < parts.size(); ++i) xs[i] = parts[i].x;
  const std::span<const ConstRows> views(xs.data(), parts.size());
  TANDEM_TRY(
      kDType == DType::kQ8_0 ? pack_code_rows(exec, views, packed)
                             : pack_split_rows(exec, views, packed));
  for (size_t i = 0; i < parts.size(); ++i) args.parts[i].packed = packed[i];
  if (kDType == DType::kQ8_0 && args.num_rows <= 4) {
    return launch_kernel<DType::kQ8_0, 4>(exec, args, num_ctas);
  }
  return args.num_rows <= 8 ? launch_kernel<kDType, 8>(exec, args, num_ctas)
                            : launch_kernel<kDType, 16>(exec, args, num_ctas);
}

}  // namespace

Status gemv_q8_0(const Exec& exec, std::span<const GemvPart> parts) {
  return gemv_stream<DType::kQ8_0>(exec, parts);
}

Status gemv_f16(const Exec& exec, std::span<const GemvPart> parts) {
  return gemv_stream<DType::kF16>(exec, parts);
}

}  // namespace tandem::cuda
