#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/support/naive_math.h"
#include "tests/support/tensor.h"

namespace tandem::test::naive {

// Section 5 of the model's specification in float64: one token, one head or one row at a time.

/// 5.3. comb[s * j + k]: source stream j, target k.
struct HcMix {
  Vector pre, post, comb;
};
HcMix hc_mix(
    std::span<const double> x, const Tensor64& fn, std::span<const float> scale,
    std::span<const float> base, int64_t num_streams, int iterations, double hc_eps,
    double rms_eps);

/// y[d] = sum_j pre[j] x[j][d]
Vector hc_collapse(std::span<const double> x, const Vector& pre);

/// 5.4: out[k][d] = post[k] f[d] + sum_j comb[j][k] x[j][d]
Vector hc_post(std::span<const double> x, std::span<const double> f, const HcMix& mix);

/// 5.9, before the projection to the vocabulary.
Vector head_row(
    std::span<const double> x, const Tensor64& fn, double scale, std::span<const float> base,
    std::span<const float> norm, double hc_eps, double rms_eps);

/// 5.5: one head over the rows it sees, without the un-rotation.
Vector attend(std::span<const double> q, const std::vector<Vector>& rows, double sink);

/// 5.6, the pooling: u and g of the slots, per channel.
Vector pool(const std::vector<Vector>& u, const std::vector<Vector>& g);

/// 5.7: sum_h max(0, q_h . row) w_h / sqrt(head_dim * num_heads)
double index_score(
    std::span<const double> q, std::span<const double> row, std::span<const double> w);

/// The indices of the `count` largest scores, ascending; of equal ones the lower index.
std::vector<int32_t> top_indices(std::span<const double> scores, int64_t count);

/// 5.8: sqrt(softplus(z)).
Vector route_scores(std::span<const double> x, const Tensor64& gate);
/// scale * s / max(sum of the chosen s, 2^-14)
Vector route_weights(std::span<const double> scores, std::span<const int32_t> ids, double scale);

/// W2 (silu(min(W1 x, limit)) * clamp(W3 x, -limit, limit) * weight)
Vector expert(
    std::span<const double> x, const Tensor64& w1, const Tensor64& w3, const Tensor64& w2,
    double limit, double weight);

}  // namespace tandem::test::naive
