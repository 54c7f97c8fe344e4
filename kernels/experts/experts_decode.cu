#include "kernels/experts/experts_decode.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>

#include "kernels/cuda/launch.cuh"
#include "kernels/experts/experts_down.cuh"
#include "kernels/experts/experts_gate_up.cuh"
#include "kernels/linear/gemv_parts.cuh"
#include "kernels/linear/pack_rows.h"

namespace tandem::detail {
namespace {

constexpr int kCtasPerSm = 2;
constexpr int kGateUpCtasPerSm = 3;  // of few activation rows, whose kernel needs fewer registers

unsigned num_resident(int64_t items, int ctas_per_sm) {
  return static_cast<unsigned>(
      std::min<int64_t>(items, static_cast<int64_t>(cuda::num_sms()) * ctas_per_sm));
}

template <DType kDType>
Status launch_gate_up(const Exec& exec, const cuda::GateUpArgs& args) {
  const unsigned ctas = num_resident(
      args.shared_items + args.op.expert_ids.cols * args.num_rows * args.items_per_expert,
      args.num_rows <= 4 ? kGateUpCtasPerSm : kCtasPerSm);
  size_t shared_bytes = cuda::table_bytes<kDType>();
  if (args.num_rows == 1) {
    shared_bytes += static_cast<size_t>(cuda::code_rows_bytes(1, args.op.x.cols));
  }
  const auto kernel = args.num_rows == 1   ? cuda::gate_up_kernel<kDType, 1>
                      : args.num_rows <= 4 ? cuda::gate_up_kernel<kDType, 4>
                      : args.num_rows <= 8 ? cuda::gate_up_kernel<kDType, 8>
                                           : cuda::gate_up_kernel<kDType, 16>;
  return cuda::launch(
      "experts gate_up", kernel, ctas, cuda::kExpertThreads, shared_bytes, exec.stream, args);
}

template <DType kDType>
Status launch_down(const Exec& exec, const cuda::DownArgs& args) {
  const int64_t top_k = args.op.expert_ids.cols;
  const unsigned ctas =
      num_resident((args.op.out.cols + cuda::kExpertTile - 1) / cuda::kExpertTile, kCtasPerSm);
  const size_t shared_bytes =
      cuda::table_bytes<kDType>() +
      static_cast<size_t>(cuda::down_sums(args.num_rows, top_k)) * sizeof(float);
  const auto kernel = args.num_rows == 1   ? cuda::down_kernel<kDType, 1>
                      : args.num_rows <= 4 ? cuda::down_kernel<kDType, 4>
                      : args.num_rows <= 8 ? cuda::down_kernel<kDType, 8>
                                           : cuda::down_kernel<kDType, 16>;
  return cuda::launch(
      "experts down", kernel, ctas, cuda::kExpertThreads, shared_bytes, exec.stream, args);
}

// Calls fn with the type as a template argument.
template <class Fn>
Status with_dot_type(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kQ8_0: return fn.template operator()<DType::kQ8_0>();
    case DType::kQ2_K: return fn.template operator()<DType::kQ2_K>();
    case DType::kQ4_K: return fn.template operator()<DType::kQ4_K>();
    case DType::kIQ2_XXS: return fn.template operator()<DType::kIQ2_XXS>();
    case DType::kMXFP4: return fn.template operator()<DType::kMXFP4>();
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ6_K:
    case DType::kI32: break;
  }
  TANDEM_UNREACHABLE();
}

int num_tiles(int64_t rows) {
  return static_cast<int>((rows + cuda::kExpertTile - 1) / cuda::kExpertTile);
}

}  // namespace

bool has_expert_dots(const ExpertsArgs& args) {
  return cuda::has_code_dot(args.gate.first.dtype) && cuda::has_code_dot(args.down.first.dtype) &&
         args.shared_gate.dtype == DType::kQ8_0 && args.shared_up.dtype == DType::kQ8_0 &&
         args.shared_down.dtype == DType::kQ8_0 && args.shared_down.cols == args.down.first.cols &&
         args.expert_ids.cols <= cuda::kExpertTopKMax;
}

Status experts_decode_cuda(const Exec& exec, const ExpertsArgs& args) {
  const int64_t n = args.x.rows;
  const int64_t slots = args.expert_ids.cols + 1;
  const int64_t expert_dim = args.down.first.cols;
  const Scratch::Frame frame(*exec.scratch);
  const Rows middle = {
      exec.scratch->take<float>(n * slots * expert_dim), n * slots, expert_dim, expert_dim};

  cuda::GateUpArgs gate_up = {};
  gate_up.op = args;
  gate_up.middle = middle;
  gate_up.num_rows = static_cast<int>(n);
  gate_up.shared_items = num_tiles(args.shared_gate.rows);
  gate_up.items_per_expert = num_tiles(args.gate.first.rows);
  gate_up.rotate = cuda::num_sms();
  std::array<std::byte*, 1> packed = {};
  if (n > 1) {
    const std::array<ConstRows, 1> xs = {args.x};
    TANDEM_TRY(cuda::pack_code_rows(exec, xs, packed));
    gate_up.packed = packed[0];
  }
  TANDEM_TRY(with_dot_type(args.gate.first.dtype, [&]<DType kDType>() {
    return launch_gate_up<kDType>(exec, gate_up);
  }));

  cuda::DownArgs down = {};
  down.op = args;
  down.middle_cols = static_cast<int>(expert_dim);
  down.num_rows = static_cast<int>(n);
  const std::array<ConstRows, 1> middles = {middle};
  TANDEM_TRY(cuda::pack_code_rows(exec, middles, packed));
  down.packed = packed[0];
  return with_dot_type(
      args.down.first.dtype, [&]<DType kDType>() { return launch_down<kDType>(exec, down); });
}

}  // namespace tandem::detail
