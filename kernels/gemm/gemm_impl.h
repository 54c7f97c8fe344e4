#pragma once

#include "kernels/core/exec.h"
#include "model/formats/dtype.h"

namespace tandem::cuda {

struct GemmParams;

// Queue the kernel for `dtype` over num_tiles_x tiles of rows of x: one weight (rows) or gate and
// up. small: tiles of half the weight rows, for products too small to fill the device. The sm90
// kernels run on compute capability 9.0 only.

Status launch_gemm_rows(
    const Exec& exec, DType dtype, bool small, const GemmParams& params, int num_tiles_x);
Status launch_gemm_rows_sm90(
    const Exec& exec, DType dtype, const GemmParams& params, int num_tiles_x);
Status launch_gemm_gate_up(
    const Exec& exec, DType dtype, bool small, const GemmParams& params, int num_tiles_x);
Status launch_gemm_gate_up_sm90(
    const Exec& exec, DType dtype, const GemmParams& params, int num_tiles_x);

}  // namespace tandem::cuda
