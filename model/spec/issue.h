#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tandem {

/// One thing that is wrong with a model file. Validation and binding collect all of them rather
/// than stop at the first.
struct Issue {
  // "missing-key", "bad-type", "mismatch", "out-of-range", "missing-tensor", "bad-shape",
  // "unexpected-tensor" or "duplicate".
  std::string code;
  std::string key;     // the metadata key or the tensor's name
  std::string detail;  // expected and found values, in words

  friend bool operator==(const Issue&, const Issue&) = default;
};

/// One line: how many issues, then the first few as `code key (detail)`.
inline std::string issues_text(std::span<const Issue> issues) {
  constexpr size_t kShownMax = 8;
  std::string text = str_cat(issues.size(), issues.size() == 1 ? " problem: " : " problems: ");
  for (size_t i = 0; i < issues.size() && i < kShownMax; ++i) {
    const Issue& issue = issues[i];
    text += str_cat(i == 0 ? "" : "; ", issue.code, " ", issue.key, " (", issue.detail, ")");
  }
  if (issues.size() > kShownMax) text += str_cat("; and ", issues.size() - kShownMax, " more");
  return text;
}

/// Ok without issues, else kInvalidArgument that starts with the file's name.
inline Status issues_to_status(std::string_view file_name, std::span<const Issue> issues) {
  if (issues.empty()) return {};
  return invalid_argument(str_cat(file_name, ": ", issues_text(issues)));
}

}  // namespace tandem
