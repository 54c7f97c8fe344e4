#pragma once

#include "kernels/embed/embed.h"

namespace tandem::detail {

// Arguments are checked and there is at least one row.

Status embed_cpu(const Exec& exec, const EmbedArgs& args);  // float32, the reference
Status embed_fast(const Exec& exec, const EmbedArgs& args);
Status embed_cuda(const Exec& exec, const EmbedArgs& args);

}  // namespace tandem::detail
