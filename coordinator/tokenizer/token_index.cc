#include "coordinator/tokenizer/token_index.h"

#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "base/check.h"

namespace tandem {

TokenIndex::TokenIndex(size_t num_tokens)
    : slots_(std::bit_ceil(2 * num_tokens + 2)), mask_(slots_.size() - 1) {}

// The slot that holds `bytes`, or the empty one where they belong.
size_t TokenIndex::slot_of(std::string_view bytes) const {
  size_t slot = static_cast<size_t>(XXH3_64bits(bytes.data(), bytes.size())) & mask_;
  while (slots_[slot].data != nullptr &&
         std::string_view(slots_[slot].data, slots_[slot].num_bytes) != bytes) {
    slot = (slot + 1) & mask_;
  }
  return slot;
}

int32_t TokenIndex::add(std::string_view bytes, int32_t id) {
  TANDEM_CHECK(bytes.data() != nullptr);
  Slot& slot = slots_[slot_of(bytes)];
  if (slot.data != nullptr) return slot.id;
  slot = {bytes.data(), static_cast<uint32_t>(bytes.size()), id};
  bytes_max_ = std::max(bytes_max_, bytes.size());
  return -1;
}

int32_t TokenIndex::find(std::string_view bytes) const {
  if (bytes.size() > bytes_max_) return -1;
  const Slot& slot = slots_[slot_of(bytes)];
  return slot.data == nullptr ? -1 : slot.id;
}

}  // namespace tandem
