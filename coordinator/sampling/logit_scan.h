#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem {

/// Logits are scanned in runs of this many, so that runs without an interesting entry are skipped
/// after a vector comparison.
inline constexpr int64_t kScanRun = 256;

/// The largest logit.
struct LogitPeak {
  float logit = 0.0f;
  int32_t id = -1;  // lowest id on ties; -1: no finite logit, or a NaN or plus infinity among them
};

/// Cost: one pass, memory-bound.
LogitPeak find_peak(std::span<const float> logits);

/// e^x for x <= 0, within 4 units in the last place, 0 below -88. Spelled in IEEE operations only,
/// so that a seed draws the same tokens on every machine and with every C library.
float exp_weight(float x);

/// weights[i] = e^((logits[i] - peak) / temperature), and the sums of runs of kScanRun weights.
///
/// Shapes: weights as logits; run_sums [ceil(n / kScanRun)].
/// Returns the sum of run_sums in order.
double exp_weights(
    std::span<const float> logits, float peak, float temperature, std::span<float> weights,
    std::span<double> run_sums);

/// The largest value of a run; minus infinity for an empty one.
float run_max(std::span<const float> run);

/// Calls visit(index, value) for each value >= floor, in ascending order of index. `floor` is read
/// again for each value, so that visit may raise it.
template <class Visit>
void for_each_at_least(std::span<const float> values, const float& floor, Visit visit) {
  for (size_t begin = 0; begin < values.size(); begin += kScanRun) {
    const auto run = values.subspan(begin, std::min<size_t>(kScanRun, values.size() - begin));
    if (!(run_max(run) >= floor)) continue;
    for (size_t i = 0; i < run.size(); ++i) {
      if (run[i] >= floor) visit(static_cast<int32_t>(begin + i), run[i]);
    }
  }
}

/// ln(sum_i(e^logits[i])) in float64. `peak` is the largest logit.
double log_sum_exp(std::span<const float> logits, float peak);

}  // namespace tandem
