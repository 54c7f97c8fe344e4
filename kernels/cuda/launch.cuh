#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/cuda/error.h"

namespace tandem::cuda {

/// Queues a kernel whose preamble may overlap the kernel before it: it must call pdl_wait() (see
/// ptx.cuh) in every thread. A failed launch is reported here, a fault inside the kernel at the
/// stream's next synchronization.
template <class... Params, class... Args>
Status launch(
    const char* what, void (*kernel)(Params...), dim3 grid, dim3 cta, size_t shared_bytes,
    cudaStream_t stream, Args&&... args) {
  // The default limit of 48 KiB counts the kernel's static arrays too.
  constexpr size_t kSharedBytesSafe = 8 * 1024;
  if (shared_bytes > kSharedBytesSafe) {
    TANDEM_TRY(to_status(
        cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
        what));
  }
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = cta;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  return to_status(
      cudaLaunchKernelEx(&config, kernel, static_cast<Params>(static_cast<Args&&>(args))...), what);
}

}  // namespace tandem::cuda
