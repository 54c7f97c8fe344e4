#include "kernels/linear/gemv.h"

#include <algorithm>
#include <array>

#include "kernels/linear/gemv_parts.cuh"
#include "kernels/linear/tile_dot.cuh"

namespace tandem::cuda {
namespace {

enum class Path { kExact, kQ8_0, kInt8, kF16 };

Path path_for(const Exec& exec, const GemvPart& part) {
  const bool aligned = reinterpret_cast<uintptr_t>(part.x.data) % 16 == 0 && part.x.stride % 4 == 0;
  if (exec.numerics == Numerics::kExact || !aligned) return Path::kExact;
  if (part.weight.dtype == DType::kQ8_0) return Path::kQ8_0;
  if (has_code_dot(part.weight.dtype)) return Path::kInt8;
  const bool whole_blocks = part.weight.cols % 32 == 0;
  return part.weight.dtype == DType::kF16 && whole_blocks ? Path::kF16 : Path::kExact;
}

bool run_together(const Exec& exec, const GemvPart& a, const GemvPart& b) {
  return a.weight.dtype == b.weight.dtype && a.weight.cols == b.weight.cols &&
         path_for(exec, a) == path_for(exec, b);
}

Status check(std::span<const GemvPart> parts) {
  TANDEM_REQUIRE(
      !parts.empty() && parts.size() <= kGemvPartsMax,
      str_cat("gemv: ", parts.size(), " parts, takes 1 to ", kGemvPartsMax));
  for (const GemvPart& part : parts) {
    TANDEM_REQUIRE(part.x.rows == parts[0].x.rows, "gemv: parts differ in their number of rows");
    TANDEM_REQUIRE(
        reinterpret_cast<uintptr_t>(part.weight.data) % 16 == 0 && part.weight.row_bytes % 16 == 0,
        "gemv: weight rows must start on 16 bytes");
  }
  return {};
}

Status run_pass(const Exec& exec, std::span<const GemvPart> parts) {
  switch (path_for(exec, parts[0])) {
    case Path::kExact: return gemv_exact(exec, parts);
    case Path::kQ8_0: return gemv_q8_0(exec, parts);
    case Path::kInt8: return gemv_int8(exec, parts);
    case Path::kF16: return gemv_f16(exec, parts);
  }
  TANDEM_UNREACHABLE();
}

}  // namespace

Status gemv(const Exec& exec, std::span<const GemvPart> parts) {
  TANDEM_TRY(check(parts));
  std::array<bool, kGemvPartsMax> done = {};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (done[i]) continue;
    std::array<GemvPart, kGemvPartsMax> group;
    size_t count = 0;
    for (size_t j = i; j < parts.size(); ++j) {
      if (done[j] || !run_together(exec, parts[i], parts[j])) continue;
      done[j] = true;
      group[count++] = parts[j];
    }
    const int64_t num_rows = parts[i].x.rows;
    for (int64_t begin = 0; begin < num_rows; begin += kPassRowsMax) {
      const int64_t pass_rows = std::min<int64_t>(kPassRowsMax, num_rows - begin);
      std::array<GemvPart, kGemvPartsMax> pass = group;
      for (size_t j = 0; j < count; ++j) {
        pass[j].x.data += begin * pass[j].x.stride;
        pass[j].x.rows = pass_rows;
        pass[j].out.data += begin * pass[j].out.stride;
        pass[j].out.rows = pass_rows;
      }
      TANDEM_TRY(run_pass(exec, std::span(pass.data(), count)));
    }
  }
  return {};
}

int num_sms() {
  thread_local int count = 0;
  if (count == 0) {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) {
      count = 0;
      return 1;
    }
  }
  return count;
}

int64_t shared_bytes_max(const Exec& exec) {
  constexpr int64_t kAnyChip = 99 * 1024;  // of compute capability 12.0 and 12.1
  constexpr int64_t kStatic = 2 * 1024;    // more than the kernels' own arrays for one row
  thread_local int of_device = 0;
  if (of_device == 0) {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&of_device, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
            cudaSuccess) {
      of_device = 0;
    }
  }
  const int64_t bytes = of_device == 0 || exec.any_chip ? kAnyChip : of_device;
  return bytes - kStatic;
}

unsigned plan_gemv(std::span<const GemvPart> parts, int ctas_max, GemvKernelArgs& args) {
  args.num_parts = static_cast<int>(parts.size());
  args.cols = static_cast<int>(parts[0].weight.cols);
  args.num_rows = static_cast<int>(parts[0].x.rows);
  args.k_warps = k_warps_for(args.cols);
  const int rows_per_group = kGemvWarps / args.k_warps * kTileRows;
  args.num_groups = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const GemvPart& part = parts[i];
    const auto rows = static_cast<int>(part.weight.rows);
    args.parts[i] = {part.weight.data,      part.x.data,   nullptr,         part.out.data,
                     part.weight.row_bytes, part.x.stride, part.out.stride, rows,
                     args.num_groups};
    args.num_groups += (rows + rows_per_group - 1) / rows_per_group;
  }
  return static_cast<unsigned>(std::min(args.num_groups, ctas_max));
}

}  // namespace tandem::cuda
