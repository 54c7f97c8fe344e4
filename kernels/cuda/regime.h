#pragma once

#include <cstdint>

#include "kernels/core/exec.h"

namespace tandem::cuda {

/// Steps of at most this many rows run as decode (vector times matrix, work split over the
/// context), longer ones as prefill (tensor-core tiles). Within a regime a row's result does not
/// depend on the other rows; between the two it differs in the last bits.
inline constexpr int64_t kDecodeRowsMax = 16;

/// Whether products of `num_rows` rows run on the tensor cores.
constexpr bool is_prefill(const Exec& exec, int64_t num_rows) {
  return exec.numerics == Numerics::kFast && num_rows > kDecodeRowsMax;
}

}  // namespace tandem::cuda
