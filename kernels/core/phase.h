#pragma once

namespace tandem {

/// What rows of a step are: of a prompt, or generated. On a GPU the two run other kernels, which
/// round differently: tiles for the tensor cores, and products of few rows that read each weight
/// once. Within a phase a row's result depends neither on the other rows nor on how many there are.
/// The CPU has one way for both.
enum class Phase { kDecode, kPrefill };

}  // namespace tandem
