#pragma once

#include "kernels/core/exec.h"
#include "kernels/core/views.h"

namespace tandem::reference {

/// out[t, i] = dot(weight[i], x[t]) in float32: each weight row is expanded once and multiplied
/// with every row of x. Output rows are split over the pool's threads.
void linear(const Exec& exec, ConstRows x, const WeightView& weight, Rows out);

}  // namespace tandem::reference
