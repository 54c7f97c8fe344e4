#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "base/check.h"

namespace tandem {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: return spdlog::level::off;
  }
  TANDEM_UNREACHABLE();
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> kInstance = [] {
    auto made = std::make_shared<spdlog::logger>(
        "tandem", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    made->set_level(spdlog::level::warn);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *kInstance;
}

void append_value(std::string& line, const std::string& value) {
  if (value.find_first_of(" \t\r\n\"=") == std::string::npos && !value.empty()) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') line += '\\';
    if (c == '\n') {
      line += "\\n";
    } else {
      line += c;
    }
  }
  line += '"';
}

}  // namespace

void set_log_level(LogLevel level) {
  logger().set_level(to_spdlog(level));
}

void log(
    LogLevel level, std::string_view folder, std::string_view event,
    std::initializer_list<LogField> fields) {
  if (!logger().should_log(to_spdlog(level))) return;
  std::string line;
  line.append(folder).append(" ").append(event);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value);
  }
  logger().log(to_spdlog(level), "{}", line);
}

}  // namespace tandem
