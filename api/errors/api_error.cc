#include "api/errors/api_error.h"

#include <nlohmann/json.hpp>

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

int http_status(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: break;
    case StatusCode::kInvalidArgument: return 400;
    case StatusCode::kNotFound: return 404;
    case StatusCode::kResourceExhausted: return 429;
    case StatusCode::kUnavailable: return 503;
    case StatusCode::kAborted: return 503;
    case StatusCode::kDeadlineExceeded: return 503;
    case StatusCode::kCancelled: return 499;
    case StatusCode::kDataLoss: return 500;
    case StatusCode::kUnimplemented: return 400;
    case StatusCode::kInternal: return 500;
  }
  TANDEM_UNREACHABLE();
}

constexpr int kRetryQueueSeconds = 5;
constexpr int kRetryUnavailableSeconds = 10;

}  // namespace

ApiError api_error(const Status& status) {
  ApiError error;
  error.http_status = http_status(status.code());
  error.message = status.message();
  if (error.http_status == 429) {
    error.code = "queue_full";
    error.retry_after_s = kRetryQueueSeconds;
  }
  if (error.http_status == 503) {
    error.code = "unavailable";
    error.retry_after_s = kRetryUnavailableSeconds;
  }
  return error;
}

ApiError prompt_too_long(int64_t num_prompt_tokens, int64_t context_tokens, std::string param) {
  ApiError error;
  error.message = str_cat(
      "prompt is too long: ", num_prompt_tokens, " tokens > ", context_tokens - 1, " maximum");
  error.param = std::move(param);
  error.code = "context_length_exceeded";
  error.num_prompt_tokens = num_prompt_tokens;
  error.context_tokens = context_tokens;
  return error;
}

const char* error_type(int status, ErrorStyle style) {
  const bool is_openai = style == ErrorStyle::kOpenAi;
  if (status == 429) return "rate_limit_error";
  if (status == 401) return is_openai ? "invalid_request_error" : "authentication_error";
  if (status == 404) return is_openai ? "invalid_request_error" : "not_found_error";
  if (status == 413) return is_openai ? "invalid_request_error" : "request_too_large";
  if (status == 503) return is_openai ? "server_error" : "overloaded_error";
  if (status >= 500) return is_openai ? "server_error" : "api_error";
  return "invalid_request_error";
}

std::string error_body(const ApiError& error, ErrorStyle style) {
  Json inner;
  const char* type = error_type(error.http_status, style);
  if (style == ErrorStyle::kAnthropic) {
    inner["type"] = type;
    inner["message"] = error.message;
  } else {
    inner["message"] = error.message;
    inner["type"] = type;
    inner["param"] = error.param.empty() ? Json(nullptr) : Json(error.param);
    inner["code"] = error.code.empty() ? Json(nullptr) : Json(error.code);
  }
  if (error.num_prompt_tokens.has_value()) inner["n_prompt_tokens"] = *error.num_prompt_tokens;
  if (error.context_tokens.has_value()) inner["n_ctx"] = *error.context_tokens;
  if (error.http_status == 429 || error.http_status == 503) {
    inner["retryable"] = error.retry_after_s.has_value();
  }
  Json body;
  if (style == ErrorStyle::kAnthropic) body["type"] = "error";
  body["error"] = std::move(inner);
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tandem::api
