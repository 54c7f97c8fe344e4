#include "kernels/experts/experts_prefill.h"

#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/gemm/gemm.h"

namespace tandem::detail {
namespace {

constexpr int kThreads = 256;

// Grid: (parts of a row, rows); out already holds the shared expert.
__global__ __launch_bounds__(kThreads) void combine_kernel(
    const float* results, int top_k, int hidden_dim, float* out, int64_t out_stride) {
  cuda::pdl_wait();
  cuda::pdl_launch_dependents();
  const int i = (blockIdx.x * kThreads + threadIdx.x) * 4;
  if (i >= hidden_dim) return;
  const float* slot = results + int64_t{blockIdx.y} * top_k * hidden_dim + i;
  float4 sum = {0, 0, 0, 0};
  for (int k = 0; k < top_k; ++k) {
    const float4 value = *reinterpret_cast<const float4*>(slot + int64_t{k} * hidden_dim);
    sum.x += value.x;
    sum.y += value.y;
    sum.z += value.z;
    sum.w += value.w;
  }
  float* target = out + blockIdx.y * out_stride + i;
  target[0] += sum.x;
  target[1] += sum.y;
  target[2] += sum.z;
  target[3] += sum.w;
}

}  // namespace

bool experts_prefill_takes(const ExpertsArgs& args) {
  for (const WeightView* weight :
       {&args.gate.first, &args.up.first, &args.down.first, &args.shared_gate, &args.shared_up,
        &args.shared_down}) {
    if (!cuda::gemm_takes(*weight)) return false;
  }
  return args.x.cols % 4 == 0 && args.gate.first.row_bytes == args.up.first.row_bytes &&
         args.shared_gate.row_bytes == args.shared_up.row_bytes &&
         args.shared_gate.dtype == args.shared_up.dtype &&
         args.gate.expert_bytes == args.up.expert_bytes;
}

Status experts_prefill_cuda(const Exec& exec, const ExpertsArgs& args) {
  const int64_t n = args.x.rows;
  const int64_t hidden_dim = args.x.cols;
  const int64_t top_k = args.expert_ids.cols;
  const int64_t num_slots = n * top_k;
  const int64_t expert_dim = args.gate.first.rows;
  const int64_t shared_dim = args.shared_gate.rows;
  Scratch::Frame frame(*exec.scratch);
  cuda::FragmentRows x;
  TANDEM_TRY(cuda::to_fragment_rows(exec, args.x, x));

  cuda::FragmentRows shared_hidden;
  TANDEM_TRY(cuda::take_fragment_rows(exec, n, shared_dim, shared_hidden));
  cuda::GateUpArgs shared_up;
  shared_up.x = x;
  shared_up.gate = {args.shared_gate, 1, 0};
  shared_up.up = {args.shared_up, 1, 0};
  shared_up.limit = args.shared_swiglu_limit;
  shared_up.hidden = shared_hidden;
  TANDEM_TRY(cuda::gemm_gate_up(exec, shared_up));
  cuda::GemmArgs shared_down;
  shared_down.x = shared_hidden;
  shared_down.weight = args.shared_down;
  shared_down.out = args.out;
  TANDEM_TRY(cuda::gemm(exec, shared_down));

  cuda::ExpertOrder order;
  TANDEM_TRY(cuda::sort_by_expert(exec, args.expert_ids, args.gate.experts, order));
  cuda::FragmentRows sorted;
  TANDEM_TRY(cuda::gather_sorted(exec, x, order, sorted));
  cuda::FragmentRows hidden;
  TANDEM_TRY(cuda::take_fragment_rows(exec, order.num_sorted, expert_dim, hidden));
  cuda::GateUpArgs up;
  up.x = sorted;
  up.gate = args.gate;
  up.up = args.up;
  up.order = &order;
  up.slot_weights = args.expert_weights;
  up.limit = args.swiglu_limit;
  up.hidden = hidden;
  TANDEM_TRY(cuda::gemm_gate_up(exec, up));
  cuda::ExpertDownArgs down;
  down.hidden = hidden;
  down.down = args.down;
  down.order = &order;
  down.out = {exec.scratch->take<float>(num_slots * hidden_dim), num_slots, hidden_dim, hidden_dim};
  TANDEM_TRY(cuda::gemm_expert_down(exec, down));
  const dim3 grid(
      static_cast<unsigned>((hidden_dim / 4 + kThreads - 1) / kThreads), static_cast<unsigned>(n));
  return cuda::launch(
      "experts combine", combine_kernel, grid, dim3(kThreads), 0, exec.stream, down.out.data,
      static_cast<int>(top_k), static_cast<int>(hidden_dim), args.out.data, args.out.stride);
}

}  // namespace tandem::detail
