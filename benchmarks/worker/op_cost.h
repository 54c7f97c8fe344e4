#pragma once

#include <cstdint>

#include "model/spec/program.h"
#include "worker/weight_table.h"

namespace tandem::bench {

/// Bytes of weights that an operation reads for a step of `num_rows` rows: each tensor once, and
/// of the routed experts as many as that many rows choose on average.
int64_t weight_bytes(const Op& op, const WeightTable& weights, int64_t num_rows);

}  // namespace tandem::bench
