#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "model/formats/dtype.h"
#include "model/gguf/gguf_file.h"

namespace tandem {

/// A file with a few layers of V4 Flash's shapes and made-up weights, to measure speed with.
struct SyntheticOptions {
  int64_t num_layers = 2;        // ratios 4, 128, 4, 128, ...; 1 to 43
  int64_t num_experts = 64;      // 6 to 256; six are used for a token, as in V4 Flash
  DType gate_up = DType::kQ4_K;  // of the routed experts
  DType down = DType::kQ4_K;
  uint64_t seed = 1;
};

/// Writes `path`. Tokenizer and all that is not a shape come from `base`, a small V4 file; so the
/// vocabulary is the base's. Rows of a tensor repeat after a few dozen.
///
/// Errors: kInvalidArgument for options out of range; those of GgufWriter::write.
/// Cost: about 1 GB on disk a layer with 64 experts, a few seconds.
Status write_synthetic_v4(
    const GgufFile& base, const SyntheticOptions& options, const std::string& path);

}  // namespace tandem
