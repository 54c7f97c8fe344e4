#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tandem {

/// Cuts generated text at the first stop string.
///
/// The match with the earliest start wins; of several that start together, the one listed first.
/// This is decided as on the finished text, however the text was split over pushes: while a match
/// that would win can still be completed, the bytes from its start on are held back. Text is never
/// cut inside a UTF-8 character: an incomplete last character is held back too.
///
/// Limits: holds back less than the longest stop string, or 3 bytes of a character.
/// Threads: one owner.
/// Cost:    a push is O(bytes held and pushed) unless they resemble a stop string; at worst times
///          the summed length of the stop strings. Allocates only while its buffer grows to the
///          longest push.
class StopMatcher {
 public:
  /// Empty strings never match.
  ///
  /// Errors: kInvalidArgument that names the value and the bound: more than kStopStringsMax
  /// strings,
  ///         one longer than kStopStringBytesMax, or one that is not UTF-8.
  static Result<StopMatcher> create(std::vector<std::string> stop_strings);

  /// Adds generated text and returns the bytes that may be shown now. They are valid until the next
  /// call. Text after a hit is dropped.
  std::string_view push(std::string_view text);

  /// The text has ended: decides what was pending and returns the last bytes to show. Bytes of an
  /// incomplete character come out as they are. Nothing may be pushed afterwards.
  std::string_view finish();

  /// Index in the list given to create of the string that ended the text.
  std::optional<size_t> hit() const { return hit_; }

  /// Bytes shown so far; after a hit, the place of the cut in the text.
  int64_t shown_bytes() const { return shown_bytes_; }

 private:
  explicit StopMatcher(std::vector<std::string> stop_strings);

  std::string_view scan(bool at_end);

  std::vector<std::string> stop_strings_;
  std::array<bool, 256> starts_stop_{};  // by byte: whether a stop string starts with it
  std::string buffer_;                   // [0, consumed_) has been shown, the rest is held back
  size_t consumed_ = 0;
  int64_t shown_bytes_ = 0;
  std::optional<size_t> hit_;
};

}  // namespace tandem
