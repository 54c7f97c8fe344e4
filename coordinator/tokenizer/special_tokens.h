#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

/// Finds special-token spellings in text: the leftmost, and at one place the longest. Immutable.
/// Threads: any.
class SpecialTokens {
 public:
  struct Match {
    size_t offset = 0;
    size_t num_bytes = 0;
    int32_t id = 0;
  };

  SpecialTokens() = default;
  /// Spellings are not empty and differ from each other.
  explicit SpecialTokens(std::vector<std::pair<std::string, int32_t>> spellings);

  std::optional<int32_t> find(std::string_view spelling) const;
  /// The first match at or after `from`.
  /// Cost: one table look-up a byte, and a search at each byte that could start a spelling.
  std::optional<Match> next(std::string_view text, size_t from) const;

 private:
  std::vector<std::pair<std::string, int32_t>> sorted_;  // by spelling
  std::array<bool, 256> starts_{};                       // first bytes of spellings
};

}  // namespace tandem
