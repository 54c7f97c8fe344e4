#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/support/tensor.h"

namespace tandem::test::naive {

// Section 4 of the model's specification in float64, written without the engine's code: rounding
// goes through a table of all codes, transforms through their matrices.

using Vector = std::vector<double>;

/// Values of the non-negative e4m3 codes 0 ... 126, ascending (127 is NaN), and of the
/// non-negative e2m1 codes 0 ... 7.
const std::vector<double>& e4m3_codes();
const std::vector<double>& e2m1_codes();

/// The nearest value of `codes`, with x's sign; ties go to the even code. Limits: |x| <= the last.
double round_to_codes(double x, const std::vector<double>& codes);

/// The smallest k with 2^k >= x > 0.
int ceil_log2(double x);

/// x in groups of `group`: scaled by 2^k, rounded, scaled back. 4.4: kFp8 over 64 values; 4.5: kFp4
/// over 32.
void round_fp8(std::span<double> x, int64_t group = 64);
void round_fp4(std::span<double> x, int64_t group = 32);

Vector rms_norm(std::span<const double> x, std::span<const float> weight, double eps);
/// 1 / sqrt(mean(x^2) + eps)
double inverse_rms(std::span<const double> x, double eps);
/// Rotates the last 2 * frequencies.size() values by pos; by -pos if `inverse`. 4.2.
void rotate(std::span<double> x, std::span<const float> frequencies, int64_t pos, bool inverse);
/// By the matrix (-1)^popcount(i & j) / sqrt(n). 4.6.
void hadamard(std::span<double> x);
double softplus(double z);
double sigmoid(double z);

/// 4.3 with d values rotated.
std::vector<float> plain_frequencies(double base, int64_t dim);
std::vector<float> yarn_frequencies(
    double base, int64_t dim, double factor, double original_context, double beta_fast,
    double beta_slow);

/// weight [m, k] times x [n, k], row by row.
Tensor64 linear(const Tensor64& x, const Tensor64& weight);
Vector linear(std::span<const double> x, const Tensor64& weight);

}  // namespace tandem::test::naive
