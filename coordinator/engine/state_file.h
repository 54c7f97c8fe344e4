#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/status.h"

namespace tandem {

// The bytes of a saved session, little-endian: "TANDEMST", u32 version = 2, u32 fingerprint bytes,
// fingerprint, i64 token count, i32 tokens; then one saved bank (kvstore/bank_format.h) a stage,
// and the u64 checksum (base/checksum.h) of all that.

Status write_state_header(
    ByteSink& sink, const std::string& fingerprint, std::span<const int32_t> tokens);

/// Errors: kDataLoss if it is no saved session, cut short or names a token outside the vocabulary;
/// kInvalidArgument if it is of another version or model, or does not fit the context.
Result<std::vector<int32_t>> read_state_header(
    ByteSource& source, const std::string& fingerprint, int64_t context_tokens, int64_t vocab_size);

}  // namespace tandem
