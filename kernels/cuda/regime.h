#pragma once

#include <cstdint>

namespace tandem::cuda {

/// Steps of at most this many rows run as decode (vector times matrix, work split over the context),
/// longer ones as prefill (tensor-core tiles). Within a regime a row's result does not depend on the
/// other rows; between the two it differs in the last bits.
inline constexpr int64_t kDecodeRowsMax = 16;

}  // namespace tandem::cuda
