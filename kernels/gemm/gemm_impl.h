#pragma once

#include "kernels/core/exec.h"
#include "model/formats/dtype.h"

namespace tandem::cuda {

struct GemmParams;

/// Queue the kernel for `dtype`; num_tiles_x tiles of rows of x. small: tiles of half the weight
/// rows, for products too small to fill the device.
Status launch_gemm_rows(
    const Exec& exec, DType dtype, bool small, const GemmParams& params, int num_tiles_x);
Status launch_gemm_gate_up(
    const Exec& exec, DType dtype, bool small, const GemmParams& params, int num_tiles_x);

}  // namespace tandem::cuda
