#pragma once

#include <memory>

#include "base/status.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "model/gguf/gguf_file.h"

namespace tandem {

/// The tokenizer that a GGUF holds in its `tokenizer.ggml.*` keys: model, pre, tokens, merges and,
/// if it is there, token_type. It copies what it needs: the file may be closed afterwards.
/// Whether the vocabulary has the size that the model wants is checked with the model.
///
/// Errors: kNotFound for a missing key; kInvalidArgument for arrays whose lengths or types do not
///         fit together, and those of Tokenizer::create(); kUnimplemented if the vocabulary is not
///         byte-level BPE. Messages start with the file's name.
Result<std::shared_ptr<const Tokenizer>> tokenizer_from_gguf(const GgufFile& file);

}  // namespace tandem
