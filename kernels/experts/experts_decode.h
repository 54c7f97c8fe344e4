#pragma once

#include "kernels/experts/experts.h"

namespace tandem::detail {

/// Whether experts_decode_cuda takes these types: int8 dots for the routed experts, Q8_0 for the
/// shared one.
bool has_expert_dots(const ExpertsArgs& args);

/// At most 16 rows, whose expert ids and weights stand in `args`; each chosen expert is read once.
Status experts_decode_cuda(const Exec& exec, const ExpertsArgs& args);

/// Any types and number of rows, in float32; reads an expert for each row that chose it.
Status experts_exact_cuda(const Exec& exec, const ExpertsArgs& args);

}  // namespace tandem::detail
