#include "kernels/linear/linear_impl.h"
#include "kernels/linear/reference_linear.h"
#include "kernels/math/reference_math.h"
#include "model/formats/dequantize.h"

namespace tandem {

void reference::linear(const Exec& exec, ConstRows x, const WeightView& weight, Rows out) {
  const Scratch::Frame frame(*exec.scratch);
  float* expanded = exec.scratch->take<float>(exec.pool->num_threads() * weight.cols);
  exec.pool->run([&](int thread_idx) {
    const int64_t num_threads = exec.pool->num_threads();
    float* row = expanded + thread_idx * weight.cols;
    const int64_t end = weight.rows * (thread_idx + 1) / num_threads;
    for (int64_t i = weight.rows * thread_idx / num_threads; i < end; ++i) {
      dequantize_row(weight.dtype, weight.row(i), weight.cols, row);
      for (int64_t t = 0; t < x.rows; ++t) out.row(t)[i] = dot(row, x.row(t), weight.cols);
    }
  });
}

Status detail::linear_cpu(const Exec& exec, const LinearArgs& args) {
  reference::linear(exec, args.x, args.weight, args.out);
  return {};
}

}  // namespace tandem
