#pragma once

#include <cstdint>
#include <span>

#include "model/families/deepseek_v4/config.h"

namespace tandem::v4 {

// The metadata of DeepSeek V4 as data: one row a key, without the "deepseek4." prefix.

/// What happens when a key is absent.
enum class Absent {
  kIssue,      // an issue
  kRecovered,  // the value is read off the tensors, with a warning
  kPublished,  // the published value holds
};

/// Where a recovered value comes from.
enum class Source { kNone, kOutputGroups, kOutputRank, kStreams, kHashLayers };

struct IntRule {
  const char* key;
  int64_t V4Config::*field;  // null: only checked
  int64_t flash;
  int64_t pro;
  int64_t small_min;  // of a small model
  int64_t small_max;
  int64_t small_multiple;
  Absent absent;
  Source source = Source::kNone;
};

struct FloatRule {
  const char* key;
  float V4Config::*field;
  double flash;
  double pro;
  double min;  // of a small model, and of a free value in every model
  double max;
  Absent absent;
  bool is_free = false;  // the file's value is used; one that is not published is announced
};

/// In the order in which they are read: a recovered value may need those before it.
std::span<const IntRule> int_rules();
std::span<const FloatRule> float_rules();

/// The published compression ratio of a layer. Limits: variant is not kSmall.
int64_t published_ratio(V4Variant variant, int64_t layer);

inline constexpr double kSwigluLimit = 10.0;
inline constexpr int64_t kFlashLayers = 43;
inline constexpr int64_t kProLayers = 61;
inline constexpr int64_t kFlashHiddenDim = 4096;
inline constexpr int64_t kProHiddenDim = 7168;

}  // namespace tandem::v4
