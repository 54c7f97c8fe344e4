#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/gguf/gguf_file.h"

namespace tandem {

/// Checks that the tokenizer arrays of `file` belong to a vocabulary of `vocab_size` tokens, so
/// that no later lookup can leave them: tokens (strings) has exactly that many entries, scores
/// (f32) and token_type (i32 or u32) as many if they are there, merges (strings) at most as many,
/// since every merge makes a token. Tokens spelled like byte escapes (`<0x0A>`) are ordinary text
/// here: the vocabulary is byte-level.
///
/// Errors: kNotFound without tokens; kInvalidArgument naming the key with both counts, or the
///         expected and the found type.
Status check_vocabulary(const GgufFile& file, uint64_t vocab_size);

}  // namespace tandem
