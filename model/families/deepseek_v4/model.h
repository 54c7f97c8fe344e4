#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "model/families/deepseek_v4/config.h"
#include "model/gguf/gguf_file.h"
#include "model/spec/model.h"

namespace tandem {

/// Whether the file's architecture is one of this family's.
bool is_deepseek_v4(const GgufFile& file);

/// Flash, PRO and consistent smaller shapes.
/// Errors: kInvalidArgument lists every key that is missing or inconsistent.
Result<std::shared_ptr<const Model>> open_deepseek_v4(const GgufFile& file);

/// A model without a file, for weights that are made up.
std::shared_ptr<const Model> make_deepseek_v4(V4Config config, std::string name);

}  // namespace tandem
