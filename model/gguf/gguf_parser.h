#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/formats/dtype.h"
#include "model/gguf/gguf_value.h"

namespace tandem {

/// One tensor of a file. Views are valid while the file is open.
struct TensorInfo {
  std::string_view name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> dims;       // ne order: dims[0] is contiguous
  const std::byte* data = nullptr;  // aligned to the file's alignment
  uint64_t bytes = 0;
  int split_idx = 0;  // which file of a split model
};

/// What the header of one file says. Views into the parsed bytes.
struct GgufHeader {
  std::vector<std::pair<std::string_view, GgufValue>> metadata;  // in file order, keys unique
  std::vector<TensorInfo> tensors;                               // in file order, names unique
  uint64_t alignment = 32;
  uint64_t data_offset = 0;  // where the tensor data starts
};

/// Reads the header of a GGUF v3 file and places every tensor inside `file`.
///
/// Limits: base/limits.h (kGguf*). Memory grows with the header's bytes, never with a count that
/// the
///         header claims.
/// Errors: kInvalidArgument; the message starts with `name`, then says which entry is wrong.
/// Threads: any. Cost: one pass over the header; tensor data is not touched.
Result<GgufHeader> parse_gguf(std::span<const std::byte> file, std::string_view name);

}  // namespace tandem
