#include "api/server/replies.h"

namespace tandem::api {

HttpReply json_reply(const Json& body) {
  HttpReply out;
  out.content_type = "application/json";
  out.body = json_text(body);
  return out;
}

HttpReply error_reply(const ApiError& error, ErrorStyle style) {
  HttpReply out;
  out.status = error.http_status;
  out.content_type = "application/json";
  out.body = error_body(error, style);
  if (error.retry_after_s.has_value()) {
    out.headers.emplace_back("Retry-After", std::to_string(*error.retry_after_s));
  }
  if (!error.allow.empty()) out.headers.emplace_back("Allow", error.allow);
  return out;
}

ErrorStyle error_style(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorStyle::kAnthropic : ErrorStyle::kOpenAi;
}

}  // namespace tandem::api
