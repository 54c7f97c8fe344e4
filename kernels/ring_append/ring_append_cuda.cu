#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/row_math.cuh"
#include "kernels/ring_append/ring_append_impl.h"

namespace tandem::detail {
namespace {

constexpr int kNumThreads = 256;

// Grid: a CTA for each row. A row that a later one of its segment overwrites stores nothing.
__global__ __launch_bounds__(kNumThreads) void ring_append_kernel(
    const __grid_constant__ RingAppendArgs args) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const auto row = static_cast<int64_t>(blockIdx.x);
  const Segment segment = args.step.segments[args.step.segment[row]];
  const int64_t pos = args.step.pos[row];
  if (pos + args.ring.capacity_rows < int64_t{segment.first_pos} + segment.num_rows) return;
  const float* value = args.value.row(row);
  std::byte* to = args.ring.row(segment.bank, pos % args.ring.capacity_rows);
  for (int64_t i = threadIdx.x; i < args.ring.row_values; i += kNumThreads) {
    cuda::store_value(args.ring.dtype, to, i, value[i]);
  }
}

}  // namespace

Status ring_append_cuda(const Exec& exec, const RingAppendArgs& args) {
  return cuda::launch(
      "ring_append", ring_append_kernel, static_cast<unsigned>(args.step.num_rows), kNumThreads, 0,
      exec.stream, args);
}

}  // namespace tandem::detail
