#pragma once

#include <memory>

#include "base/status.h"
#include "model/gguf/gguf_file.h"
#include "model/spec/model.h"

namespace tandem {

/// The model in `file`, by whichever family knows its architecture.
/// Errors: kUnimplemented names an architecture that no family knows; otherwise the family's.
Result<std::shared_ptr<const Model>> open_model(const GgufFile& file);

}  // namespace tandem
