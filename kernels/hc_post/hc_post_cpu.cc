#include <array>

#include "kernels/hc_post/hc_post_impl.h"
#include "kernels/hc_pre/hc_pre.h"

namespace tandem::detail {

Status hc_post_cpu(const Exec& exec, const HcPostArgs& args) {
  const int64_t s = args.num_streams;
  const int64_t hidden_dim = args.branch.cols;
  exec.pool->for_range(args.streams.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* streams = args.streams.row(t);
      const float* branch = args.branch.row(t);
      const float* post = args.mix.row(t);
      const float* comb = post + s;
      for (int64_t i = 0; i < hidden_dim; ++i) {
        std::array<float, kHcStreamsMax> mixed{};
        for (int64_t k = 0; k < s; ++k) {
          mixed[k] = post[k] * branch[i];
          for (int64_t j = 0; j < s; ++j) mixed[k] += comb[s * j + k] * streams[j * hidden_dim + i];
        }
        for (int64_t k = 0; k < s; ++k) streams[k * hidden_dim + i] = mixed[k];
      }
    }
  });
  return {};
}

}  // namespace tandem::detail
