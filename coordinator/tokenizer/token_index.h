#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tandem {

/// Token ids by their bytes. The bytes are borrowed. Immutable once filled.
/// Threads: reads from any.
class TokenIndex {
 public:
  /// For up to `num_tokens` tokens.
  explicit TokenIndex(size_t num_tokens = 0);

  /// The id that had these bytes before, or -1 with the new one added.
  int32_t add(std::string_view bytes, int32_t id);
  /// The id, or -1.
  int32_t find(std::string_view bytes) const;
  /// Length of the longest token.
  size_t bytes_max() const { return bytes_max_; }

 private:
  struct Slot {
    const char* data = nullptr;  // nullptr: empty
    uint32_t num_bytes = 0;
    int32_t id = 0;
  };
  size_t slot_of(std::string_view bytes) const;

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  size_t bytes_max_ = 0;
};

}  // namespace tandem
