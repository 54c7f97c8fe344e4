#include <algorithm>

#include "kernels/embed/embed_impl.h"
#include "model/formats/dequantize.h"

namespace tandem::detail {

Status embed_cpu(const Exec&, const EmbedArgs& args) {
  const int64_t hidden_dim = args.table.cols;
  for (int64_t t = 0; t < args.step.num_rows; ++t) {
    float* streams = args.streams.row(t);
    dequantize_row(args.table.dtype, args.table.row(args.step.token[t]), hidden_dim, streams);
    for (int64_t s = 1; s < args.num_streams; ++s) {
      std::copy_n(streams, hidden_dim, streams + s * hidden_dim);
    }
  }
  return {};
}

Status embed_fast(const Exec& exec, const EmbedArgs& args) {
  return embed_cpu(exec, args);
}

}  // namespace tandem::detail
