#pragma once

#include <string_view>

namespace tandem::v4 {

// Spellings of the special tokens that prompts use. The bars are U+FF5C and the low blocks U+2581.
// Source: the added tokens of DeepSeek V4's tokenizer.

inline constexpr std::string_view kBos = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEos = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kUser = "<｜User｜>";
inline constexpr std::string_view kAssistant = "<｜Assistant｜>";
inline constexpr std::string_view kThinkOpen = "<think>";
inline constexpr std::string_view kThinkClose = "</think>";
inline constexpr std::string_view kDsml = "｜DSML｜";
inline constexpr std::string_view kLatestReminder = "<｜latest_reminder｜>";

/// ASCII whitespace, the only kind that separates DSML elements.
constexpr bool is_dsml_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

}  // namespace tandem::v4
