#include <algorithm>

#include "kernels/experts/experts_impl.h"
#include "kernels/linear/reference_linear.h"
#include "kernels/math/reference_math.h"

namespace tandem::detail {
namespace {

/// One expert's feed-forward weights.
struct Ffn {
  WeightView gate, up, down;
  float limit;
};

/// out[r] = down (silu(min(gate x, limit)) * clamp(up x) * weights[r]); weights == nullptr: 1.
void run_ffn(const Exec& exec, const Ffn& ffn, ConstRows x, const float* weights, Rows out) {
  const Scratch::Frame frame(*exec.scratch);
  const int64_t n = x.rows;
  const int64_t dim = ffn.gate.rows;
  const Rows gate{exec.scratch->take<float>(n * dim), n, dim, dim};
  const Rows up{exec.scratch->take<float>(n * dim), n, dim, dim};
  reference::linear(exec, x, ffn.gate, gate);
  reference::linear(exec, x, ffn.up, up);
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t i = 0; i < dim; ++i) {
      const float g = std::min(gate.row(r)[i], ffn.limit);
      const float u = std::clamp(up.row(r)[i], -ffn.limit, ffn.limit);
      const float activated = g * reference::sigmoid(g) * u;
      gate.row(r)[i] = weights != nullptr ? activated * weights[r] : activated;
    }
  }
  reference::linear(exec, gate, ffn.down, out);
}

}  // namespace

Status experts_cpu(const Exec& exec, const ExpertsArgs& args) {
  const int64_t n = args.x.rows;
  const int64_t hidden_dim = args.x.cols;
  const int64_t top_k = args.expert_ids.cols;
  const Scratch::Frame frame(*exec.scratch);
  // results[t * top_k + k]: summed at the end in the order of k, whatever order the experts ran in.
  const Rows results{
      exec.scratch->take<float>(n * top_k * hidden_dim), n * top_k, hidden_dim, hidden_dim};
  const Rows inputs{exec.scratch->take<float>(n * hidden_dim), n, hidden_dim, hidden_dim};
  const Rows outputs{exec.scratch->take<float>(n * hidden_dim), n, hidden_dim, hidden_dim};
  float* weights = exec.scratch->take<float>(n);
  int64_t* slots = exec.scratch->take<int64_t>(n);

  for (int64_t e = 0; e < args.gate.experts; ++e) {
    int64_t num_rows = 0;
    for (int64_t t = 0; t < n; ++t) {
      for (int64_t k = 0; k < top_k; ++k) {
        if (args.expert_ids.row(t)[k] != e) continue;
        std::copy_n(args.x.row(t), hidden_dim, inputs.row(num_rows));
        weights[num_rows] = args.expert_weights.row(t)[k];
        slots[num_rows++] = t * top_k + k;
      }
    }
    if (num_rows == 0) continue;
    const Ffn ffn{args.gate.expert(e), args.up.expert(e), args.down.expert(e), args.swiglu_limit};
    run_ffn(
        exec, ffn, {inputs.data, num_rows, hidden_dim, hidden_dim}, weights,
        {outputs.data, num_rows, hidden_dim, hidden_dim});
    for (int64_t r = 0; r < num_rows; ++r) {
      std::copy_n(outputs.row(r), hidden_dim, results.row(slots[r]));
    }
  }

  const Ffn shared{args.shared_gate, args.shared_up, args.shared_down, args.shared_swiglu_limit};
  run_ffn(exec, shared, args.x, nullptr, outputs);
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t i = 0; i < hidden_dim; ++i) {
      float sum = 0;
      for (int64_t k = 0; k < top_k; ++k) sum += results.row(t * top_k + k)[i];
      args.out.row(t)[i] = sum + outputs.row(t)[i];
    }
  }
  return {};
}

}  // namespace tandem::detail
