#pragma once

#include <memory>

#include "base/status.h"
#include "model/gguf/gguf_file.h"
#include "model/spec/model.h"

namespace tandem {

/// Whether the file's architecture is one of this family's.
bool is_deepseek_v4(const GgufFile& file);

/// Flash, PRO and consistent smaller shapes.
/// Errors: kInvalidArgument lists every key that is missing or inconsistent.
Result<std::shared_ptr<const Model>> open_deepseek_v4(const GgufFile& file);

}  // namespace tandem
