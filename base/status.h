#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "base/check.h"

namespace tandem {

/// What the caller should do next. The list is closed.
enum class StatusCode {
  kOk,
  kInvalidArgument,    // fix the call, the file or the option
  kNotFound,           // the named thing does not exist
  kResourceExhausted,  // shed load or free something, then try again
  kUnavailable,        // try again, same place
  kAborted,            // redo the step
  kDeadlineExceeded,
  kCancelled,
  kDataLoss,       // stop using that data
  kUnimplemented,  // this build or this model cannot do it
  kInternal,       // stop the process
};

/// The code's name in snake_case, for logs and JSON.
const char* status_code_name(StatusCode code);

/// Success, or a code with one line that carries the value and says what to do.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {
    TANDEM_CHECK(code != StatusCode::kOk);
  }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

/// A value or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    TANDEM_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & {
    TANDEM_CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    TANDEM_CHECK(ok());
    return *value_;
  }
  T&& value() && {
    TANDEM_CHECK(ok());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

/// Concatenates its arguments as a stream would print them.
template <class... Args>
std::string str_cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return std::move(out).str();
}

/// What the system says of `error`, a value of errno. Any thread, unlike strerror.
std::string errno_text(int error);

inline Status invalid_argument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}

namespace detail {
inline Status to_status(Status status) {
  return status;
}
template <class T>
Status to_status(Result<T>&& result) {
  return std::move(result).status();
}
}  // namespace detail

}  // namespace tandem

#define TANDEM_CONCAT_(a, b) a##b
#define TANDEM_CONCAT(a, b) TANDEM_CONCAT_(a, b)

/// Returns from the enclosing function if `expr`, a Status, is an error.
#define TANDEM_TRY(expr) TANDEM_TRY_(TANDEM_CONCAT(tandem_status_, __COUNTER__), expr)
#define TANDEM_TRY_(tmp, expr)                      \
  do {                                              \
    if (::tandem::Status tmp = (expr); !tmp.ok()) { \
      return tmp;                                   \
    }                                               \
  } while (false)

/// Declares or assigns `lhs` from `expr`, a Result; returns its Status if it is an error.
#define TANDEM_TRY_ASSIGN(lhs, expr) \
  TANDEM_TRY_ASSIGN_(TANDEM_CONCAT(tandem_result_, __COUNTER__), lhs, expr)
#define TANDEM_TRY_ASSIGN_(tmp, lhs, expr) \
  auto tmp = (expr);                       \
  if (!tmp.ok()) {                         \
    return tmp.status();                   \
  }                                        \
  lhs = std::move(tmp).value()

/// Returns kInvalidArgument with `message` unless `cond` holds.
#define TANDEM_REQUIRE(cond, message)             \
  do {                                            \
    if (!(cond)) {                                \
      return ::tandem::invalid_argument(message); \
    }                                             \
  } while (false)
