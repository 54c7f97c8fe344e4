#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/status.h"

namespace tandem {

// The bytes of a saved session, little-endian: "TANDEMST", u32 version = 1, u32 fingerprint bytes,
// fingerprint, i64 token count, i32 tokens; then one saved bank (kvstore/bank_format.h) a stage.

Status write_state_header(
    ByteSink& sink, const std::string& fingerprint, std::span<const int32_t> tokens);

/// Errors: kDataLoss if it is no saved session, kInvalidArgument if it is of another model or
/// longer than the context.
Result<std::vector<int32_t>> read_state_header(
    ByteSource& source, const std::string& fingerprint, int64_t context_tokens);

}  // namespace tandem
