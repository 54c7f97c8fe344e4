#pragma once

namespace tandem::detail {
/// Prints the failed condition with its place and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace tandem::detail

/// Aborts, in every build, when our own code broke a promise. Never for input, files, peers or the
/// GPU.
#define TANDEM_CHECK(cond) \
  (static_cast<bool>(cond) ? void(0) : ::tandem::detail::check_failed(#cond, __FILE__, __LINE__))

/// Marks a place that no execution reaches.
#define TANDEM_UNREACHABLE() ::tandem::detail::check_failed("unreachable", __FILE__, __LINE__)
