#include "kernels/compress/compress_impl.h"

namespace tandem::detail {

Status compress_fast(const Exec& exec, const CompressArgs& args) {
  return compress_cpu(exec, args);
}

}  // namespace tandem::detail
