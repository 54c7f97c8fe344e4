#pragma once

#include <string>
#include <string_view>

namespace tandem::v4 {

/// Passes UTF-8 through piece by piece. A character that the piece cuts waits for the next one, and
/// each maximal invalid part becomes U+FFFD, so that any split of the bytes gives the same text.
/// Threads: one owner.
class Utf8Repair {
 public:
  /// Appends the whole characters known so far to `out`.
  void append(std::string_view bytes, std::string& out);
  /// The text ends here: a character still waiting becomes U+FFFD.
  void flush(std::string& out);

 private:
  std::string tail_;  // the start of one character, at most 3 bytes
};

/// The whole of `bytes` with invalid parts replaced.
std::string repair_utf8(std::string_view bytes);

}  // namespace tandem::v4
