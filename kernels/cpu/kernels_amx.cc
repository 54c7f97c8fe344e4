#include "kernels/cpu/kernel_tables.h"

namespace tandem::cpu {

const CpuKernels& amx_kernels() {
  return avx512_kernels();
}

}  // namespace tandem::cpu
