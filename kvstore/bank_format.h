#pragma once

#include <cstdint>

#include "base/byte_stream.h"
#include "base/status.h"
#include "model/spec/state_plan.h"

namespace tandem {

// The bytes of a saved bank, little-endian:
//   "TANDEMBK", u32 version = 1, u32 num_slabs, i64 length in tokens
//   for each slab: u32 name bytes, name, u32 kind, u32 ggml type id, i64 row_values,
//                  i64 tokens_per_row, i64 window, i64 first row, i64 num_rows, then the rows.

struct BankHeader {
  int64_t length = 0;
  uint32_t num_slabs = 0;
};

struct SavedRows {
  int64_t first = 0;
  int64_t count = 0;

  friend bool operator==(const SavedRows&, const SavedRows&) = default;
};

Status write_bank_header(ByteSink& sink, const BankHeader& header);
/// Errors: kDataLoss if it is no saved bank, kInvalidArgument for another version.
Result<BankHeader> read_bank_header(ByteSource& source);

Status write_slab_header(ByteSink& sink, const SlabSpec& slab, const SavedRows& rows);
/// Errors: kInvalidArgument if the saved slab is another one than `slab` with `rows`.
Status expect_slab_header(ByteSource& source, const SlabSpec& slab, const SavedRows& rows);

}  // namespace tandem
