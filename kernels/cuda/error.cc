#include "kernels/cuda/error.h"

namespace tandem::cuda {
namespace {

StatusCode code_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return StatusCode::kResourceExhausted;
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorDevicesUnavailable:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorInitializationError:
    case cudaErrorStubLibrary: return StatusCode::kUnavailable;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice: return StatusCode::kNotFound;
    case cudaErrorNoKernelImageForDevice: return StatusCode::kUnimplemented;
    default: return StatusCode::kInternal;
  }
}

const char* advice_for(StatusCode code) {
  switch (code) {
    case StatusCode::kResourceExhausted:
      return "; device memory is exhausted: shorten the context, lower the number of banks, or "
             "load "
             "fewer layers";
    case StatusCode::kUnavailable:
      return "; the NVIDIA driver is missing or too old for CUDA 13: run on the CPU, or install "
             "driver 580 or newer";
    case StatusCode::kNotFound:
      return "; there is no such GPU: check nvidia-smi, or run on the CPU";
    case StatusCode::kUnimplemented:
      return "; this build has no code for that GPU: rebuild with its architecture in "
             "TANDEM_CUDA_ARCHITECTURES";
    default: return "; the GPU cannot be used by this process any more: restart it";
  }
}

}  // namespace

Status to_status(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();
  const StatusCode code = code_of(error);
  return {
      code, str_cat(
                what, ": ", cudaGetErrorName(error), " (", cudaGetErrorString(error), ")",
                advice_for(code))};
}

}  // namespace tandem::cuda
