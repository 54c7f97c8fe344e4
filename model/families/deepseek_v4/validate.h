#pragma once

#include <vector>

#include "base/status.h"
#include "model/families/deepseek_v4/config.h"
#include "model/gguf/gguf_file.h"
#include "model/spec/issue.h"

namespace tandem {

/// Reads and checks the metadata of a DeepSeek V4 file: V4 Flash and V4 PRO with their published
/// values, or a smaller model of the same architecture with values that fit together.
///
/// Every integer and float type is accepted where the value fits, published values are compared
/// with a relative tolerance of 1e-6, and keys that some converters leave out are recovered from
/// the tensors. The norm epsilons are the file's, whatever they are within [1e-30, 1e-3]. An
/// unusual or recovered value is logged as a warning, the hash of all effective values as
/// information.
///
/// Errors: kInvalidArgument that starts with the file's name and lists every issue, one or more for
///         each wrong key. `issues`, if not null, receives the same as data.
Result<V4Config> validate_v4(const GgufFile& file, std::vector<Issue>* issues = nullptr);

}  // namespace tandem
