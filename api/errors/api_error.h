#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status.h"

namespace tandem::api {

/// Why a request failed, in terms that every surface can write.
struct ApiError {
  int http_status = 400;
  std::string message;
  std::string param;                         // path of the field; empty: none
  std::string code;                          // for programs; empty: none
  std::optional<int> retry_after_s;          // trying again later may help
  std::optional<int64_t> num_prompt_tokens;  // of a prompt that does not fit
  std::optional<int64_t> context_tokens;
  std::string allow;  // of 405: the methods that are allowed
};

/// The error that a failed call of ours means to a client.
ApiError api_error(const Status& status);

/// A prompt of `num_prompt_tokens` in a context that holds fewer; `param` is the field it came in.
ApiError prompt_too_long(int64_t num_prompt_tokens, int64_t context_tokens, std::string param);

enum class ErrorStyle { kOpenAi, kAnthropic };

/// The body of an error response, compact JSON.
std::string error_body(const ApiError& error, ErrorStyle style);
/// The `type` that the style gives this HTTP status.
const char* error_type(int http_status, ErrorStyle style);

/// A value or the error to answer with.
template <class T>
class [[nodiscard]] ApiResult {
 public:
  ApiResult(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  ApiResult(ApiError error) : value_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.index() == 0; }
  T& value() {
    TANDEM_CHECK(ok());
    return std::get<0>(value_);
  }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }
  const ApiError& error() const {
    TANDEM_CHECK(!ok());
    return std::get<1>(value_);
  }

 private:
  std::variant<T, ApiError> value_;
};

}  // namespace tandem::api
