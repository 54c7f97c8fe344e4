#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/errors/api_error.h"
#include "base/limits.h"

namespace tandem::api {

/// A request whose framing is checked and whose body is complete.
struct HttpRequest {
  std::string method;
  std::string path;                                          // of the target, without the query
  std::string query;                                         // behind '?', empty if there is none
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;                                          // chunks joined

  /// The first header of that name (in lower case), or empty.
  std::string_view header(std::string_view name) const;
};

/// Reads one HTTP/1 request from bytes as they arrive. Everything is bounded while it comes in:
/// kHttpHeadBytesMax, kHttpHeadersMax, kHttpTargetBytesMax, kHttpBodyBytesMax.
///
/// Refused besides bad syntax: two lengths (Content-Length twice, or with Transfer-Encoding),
/// folded headers, control characters, a coding other than chunked, and a POST without a length.
/// What comes after the request is dropped. Threads: one owner.
class HttpRequestReader {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  State push(std::string_view bytes);
  State state() const { return state_; }

  const HttpRequest& request() const { return request_; }
  HttpRequest take() { return std::move(request_); }
  /// Of kFailed: 400, 411, 413, 431 or 505.
  const ApiError& error() const { return error_; }
  /// Whether the client waits for "100 Continue". True once, after the head.
  bool take_continue();
  /// Bytes of the body so far.
  int64_t body_bytes() const { return static_cast<int64_t>(request_.body.size()); }

 private:
  enum class Part { kLength, kChunkSize, kChunk, kChunkEnd, kTrailer };

  State fail(int http_status, std::string message);
  State read_head();
  State read_request_line(std::string_view line);
  State read_header(std::string_view line);
  State begin_body();
  State push_body(std::string_view bytes);
  /// Takes one line of framing from `bytes` into line_. False: it is not complete.
  bool take_line(std::string_view& bytes, size_t bytes_max);
  State read_chunk_size();

  State state_ = State::kHead;
  Part part_ = Part::kLength;
  HttpRequest request_;
  ApiError error_;
  std::string head_;
  size_t scanned_ = 0;  // of head_; no end of the head before here
  int64_t content_length_ = -1;
  bool is_chunked_ = false;
  bool wants_continue_ = false;
  int64_t left_ = 0;  // of the body or chunk
  std::string line_;
  int64_t trailer_bytes_ = 0;
};

}  // namespace tandem::api
