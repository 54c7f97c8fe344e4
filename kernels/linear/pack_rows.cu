#include "kernels/linear/pack_rows.h"

#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/linear/gemv.h"
#include "kernels/linear/packed_rows.cuh"

namespace tandem::cuda {
namespace {

constexpr int kNumThreads = 256;

struct PackArgs {
  const float* x[kGemvPartsMax];
  int64_t stride[kGemvPartsMax];
  std::byte* to[kGemvPartsMax];
  int num_rows;
  int cols;
};

// Grid: x over rows, y over the different views.
__global__ __launch_bounds__(kNumThreads) void pack_codes_kernel(
    const __grid_constant__ PackArgs args) {
  pdl_wait();
  pdl_launch_dependents();
  const CodeRows to = code_rows_at(args.to[blockIdx.y], args.num_rows, args.cols);
  const auto row = static_cast<int64_t>(blockIdx.x);
  pack_code_row<kNumThreads>(args.x[blockIdx.y] + row * args.stride[blockIdx.y], to, row);
}

__global__ __launch_bounds__(kNumThreads) void pack_split_kernel(
    const __grid_constant__ PackArgs args) {
  pdl_wait();
  pdl_launch_dependents();
  const SplitRows to = split_rows_at(args.to[blockIdx.y], args.num_rows, args.cols);
  const auto row = static_cast<int64_t>(blockIdx.x);
  pack_split_row<kNumThreads>(args.x[blockIdx.y] + row * args.stride[blockIdx.y], to, row);
}

// Gives equal views one place and returns how many places there are.
unsigned place_views(
    const Exec& exec, std::span<const ConstRows> xs, int64_t bytes, PackArgs& args,
    std::span<std::byte*> packed) {
  unsigned count = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    unsigned view = 0;
    while (view < count && args.x[view] != xs[i].data) ++view;
    if (view == count) {
      args.x[view] = xs[i].data;
      args.stride[view] = xs[i].stride;
      args.to[view] = exec.scratch->take<std::byte>(bytes);
      ++count;
    }
    packed[i] = args.to[view];
  }
  args.num_rows = static_cast<int>(xs[0].rows);
  args.cols = static_cast<int>(xs[0].cols);
  return count;
}

}  // namespace

Status pack_code_rows(
    const Exec& exec, std::span<const ConstRows> xs, std::span<std::byte*> packed) {
  PackArgs args = {};
  const unsigned count =
      place_views(exec, xs, code_rows_bytes(xs[0].rows, xs[0].cols), args, packed);
  return launch(
      "pack_codes", pack_codes_kernel, dim3(static_cast<unsigned>(args.num_rows), count),
      kNumThreads, 0, exec.stream, args);
}

Status pack_split_rows(
    const Exec& exec, std::span<const ConstRows> xs, std::span<std::byte*> packed) {
  PackArgs args = {};
  const unsigned count =
      place_views(exec, xs, split_rows_bytes(xs[0].rows, xs[0].cols), args, packed);
  return launch(
      "pack_split", pack_split_kernel, dim3(static_cast<unsigned>(args.num_rows), count),
      kNumThreads, 0, exec.stream, args);
}

}  // namespace tandem::cuda
