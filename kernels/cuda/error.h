#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "base/status.h"

namespace tandem::cuda {

/// Success, or what the caller should do about `error`: kResourceExhausted for memory, kUnavailable
/// for a missing or unfit driver, kNotFound for a device, kUnimplemented for an architecture that
/// this build has no code for, kInternal for the rest. `what` names the call. Clears an error that
/// the runtime keeps for the next call to find, unless the device is lost.
Status to_status(cudaError_t error, std::string_view what);

}  // namespace tandem::cuda

/// Returns from the enclosing function with a Status if the CUDA call fails.
#define TANDEM_CUDA_TRY(call) TANDEM_TRY(::tandem::cuda::to_status((call), #call))
