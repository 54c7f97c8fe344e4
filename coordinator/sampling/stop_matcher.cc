#include "coordinator/sampling/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/utf8.h"

namespace tandem {

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stop_strings) {
  TANDEM_REQUIRE(
      static_cast<int64_t>(stop_strings.size()) <= kStopStringsMax,
      str_cat("stop has ", stop_strings.size(), " strings, must be from 0 to ", kStopStringsMax));
  for (size_t i = 0; i < stop_strings.size(); ++i) {
    TANDEM_REQUIRE(
        static_cast<int64_t>(stop_strings[i].size()) <= kStopStringBytesMax,
        str_cat(
            "stop[", i, "] has ", stop_strings[i].size(), " bytes, must be from 0 to ",
            kStopStringBytesMax));
    TANDEM_REQUIRE(
        !find_invalid_utf8(stop_strings[i]).has_value(), str_cat("stop[", i, "] is not UTF-8"));
  }
  return StopMatcher(std::move(stop_strings));
}

StopMatcher::StopMatcher(std::vector<std::string> stop_strings)
    : stop_strings_(std::move(stop_strings)) {
  for (const std::string& stop : stop_strings_) {
    if (!stop.empty()) starts_stop_[static_cast<unsigned char>(stop[0])] = true;
  }
  buffer_.reserve(static_cast<size_t>(2 * kStopStringBytesMax));
}

std::string_view StopMatcher::push(std::string_view text) {
  buffer_.erase(0, consumed_);
  consumed_ = 0;
  if (hit_) return {};
  buffer_.append(text);
  return scan(/*at_end=*/false);
}

std::string_view StopMatcher::finish() {
  buffer_.erase(0, consumed_);
  consumed_ = 0;
  if (hit_) return {};
  return scan(/*at_end=*/true);
}

std::string_view StopMatcher::scan(bool at_end) {
  const std::string_view text(buffer_);
  size_t show = at_end ? text.size() : text.size() - incomplete_utf8_tail(text);
  bool pending = false;
  for (size_t start = 0; start < text.size() && !hit_ && !pending; ++start) {
    if (!starts_stop_[static_cast<unsigned char>(text[start])]) continue;
    const std::string_view rest = text.substr(start);
    for (size_t i = 0; i < stop_strings_.size() && !hit_ && !pending; ++i) {
      const std::string_view stop(stop_strings_[i]);
      if (stop.empty()) continue;
      if (rest.starts_with(stop)) {
        hit_ = i;
        show = start;
      } else if (!at_end && stop.starts_with(rest)) {
        pending = true;
        show = std::min(show, start);
      }
    }
  }
  shown_bytes_ += static_cast<int64_t>(show);
  consumed_ = show;
  const std::string_view shown = text.substr(0, show);
  if (hit_) consumed_ = text.size();
  return shown;
}

}  // namespace tandem
