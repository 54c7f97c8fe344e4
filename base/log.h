#pragma once

#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace tandem {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

/// One `key=value` of a log line. The value is printed as a stream would; text with spaces is
/// quoted.
struct LogField {
  std::string key;
  std::string value;

  template <class T>
  LogField(std::string_view k, const T& v) : key(k) {
    std::ostringstream out;
    out << v;
    value = std::move(out).str();
  }
};

/// Lowest level that is written. Default kWarning. Lines go to standard error.
/// Threads: any.
void set_log_level(LogLevel level);

/// Writes `level folder event key=value ...` on one line. `event` is a fixed name to search for.
/// Prompts and generated text never above kDebug. Threads: any.
void log(
    LogLevel level, std::string_view folder, std::string_view event,
    std::initializer_list<LogField> fields = {});

inline void log_debug(
    std::string_view folder, std::string_view event, std::initializer_list<LogField> fields = {}) {
  log(LogLevel::kDebug, folder, event, fields);
}
inline void log_info(
    std::string_view folder, std::string_view event, std::initializer_list<LogField> fields = {}) {
  log(LogLevel::kInfo, folder, event, fields);
}
inline void log_warning(
    std::string_view folder, std::string_view event, std::initializer_list<LogField> fields = {}) {
  log(LogLevel::kWarning, folder, event, fields);
}
inline void log_error(
    std::string_view folder, std::string_view event, std::initializer_list<LogField> fields = {}) {
  log(LogLevel::kError, folder, event, fields);
}

}  // namespace tandem
