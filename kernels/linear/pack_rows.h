#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/views.h"

namespace tandem::cuda {

/// Queues the packing of the rows of each of `xs` into scratch memory that the caller's frame gives
/// back; packed[i] is where code_rows_at() (packed_rows.cuh) finds them. Equal views are packed
/// once. All have the same number of rows and columns. Limits: xs.size() <= kGemvPartsMax.
Status pack_code_rows(
    const Exec& exec, std::span<const ConstRows> xs, std::span<std::byte*> packed);

/// The same for split_rows_at().
Status pack_split_rows(
    const Exec& exec, std::span<const ConstRows> xs, std::span<std::byte*> packed);

}  // namespace tandem::cuda
