#pragma once

namespace tandem {

/// How a row of state is rounded before it is stored or compared, so that it holds the values that
/// the model was trained with. kFp8: e4m3 in groups of 64 with a power-of-two scale, the rotary
/// tail excepted. kHadamardFp4: a Walsh-Hadamard transform, then e2m1 in groups of 32.
enum class RowRounding { kNone, kFp8, kHadamardFp4 };

}  // namespace tandem
