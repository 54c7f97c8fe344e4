#include "coordinator/tokenizer/special_tokens.h"

#include <algorithm>

#include "base/check.h"

namespace tandem {

SpecialTokens::SpecialTokens(std::vector<std::pair<std::string, int32_t>> spellings)
    : sorted_(std::move(spellings)) {
  std::sort(sorted_.begin(), sorted_.end());
  for (const auto& [spelling, id] : sorted_) {
    TANDEM_CHECK(!spelling.empty());
    starts_[static_cast<uint8_t>(spelling[0])] = true;
  }
}

std::optional<int32_t> SpecialTokens::find(std::string_view spelling) const {
  const auto at = std::lower_bound(
      sorted_.begin(), sorted_.end(), spelling,
      [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
  if (at == sorted_.end() || at->first != spelling) return std::nullopt;
  return at->second;
}

std::optional<SpecialTokens::Match> SpecialTokens::next(std::string_view text, size_t from) const {
  for (size_t start = from; start < text.size(); ++start) {
    if (!starts_[static_cast<uint8_t>(text[start])]) continue;
    // Narrow the sorted list byte by byte to the spellings that agree with the text so far; of
    // those, one that has no further byte sorts first.
    auto low = sorted_.begin();
    auto high = sorted_.end();
    std::optional<Match> longest;
    for (size_t i = 0; low != high && start + i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[start + i]);
      const auto byte_of = [i](const auto& entry) {
        return i < entry.first.size() ? static_cast<uint8_t>(entry.first[i]) : -1;
      };
      low = std::partition_point(low, high, [&](const auto& e) { return byte_of(e) < byte; });
      high = std::partition_point(low, high, [&](const auto& e) { return byte_of(e) <= byte; });
      if (low != high && low->first.size() == i + 1) longest = Match{start, i + 1, low->second};
    }
    if (longest.has_value()) return longest;
  }
  return std::nullopt;
}

}  // namespace tandem
