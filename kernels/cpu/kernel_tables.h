#pragma once

#include "kernels/cpu/cpu_kernels.h"

namespace tandem::cpu {

// One table for each instruction set, each defined in a file of its own that is compiled with that
// set's flags. Call only what the machine has.

const CpuKernels& portable_kernels();
#if defined(__x86_64__)
const CpuKernels& avx2_kernels();
const CpuKernels& avx512_kernels();
const CpuKernels& amx_kernels();
#elif defined(__aarch64__)
const CpuKernels& neon_kernels();
#endif

}  // namespace tandem::cpu
