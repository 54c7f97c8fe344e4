#include "api/http/request_reader.h"

#include <algorithm>

namespace tandem::api {
namespace {

constexpr size_t kChunkLineBytesMax = 256;  // size and extensions
constexpr int64_t kTrailerBytesMax = 8192;
constexpr size_t kMethodBytesMax = 16;

bool is_token_char(char c) {
  const bool is_alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const bool is_digit = c >= '0' && c <= '9';
  return is_alpha || is_digit || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7F;
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view trim(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view without_cr(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

/// Decimal digits only; -1 for anything else, INT64_MAX if too large.
int64_t parse_length(std::string_view text) {
  if (text.empty()) return -1;
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    if (value > INT64_MAX / 10 - 1) {
      value = INT64_MAX;
    } else {
      value = value * 10 + (c - '0');
    }
    if (value == INT64_MAX) continue;
  }
  return value;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

HttpRequestReader::State HttpRequestReader::fail(int http_status, std::string message) {
  error_.http_status = http_status;
  error_.message = std::move(message);
  request_.body = {};
  return state_ = State::kFailed;
}

bool HttpRequestReader::take_continue() {
  const bool wanted = wants_continue_ && state_ == State::kBody;
  wants_continue_ = false;
  return wanted;
}

HttpRequestReader::State HttpRequestReader::push(std::string_view bytes) {
  if (state_ == State::kBody) return push_body(bytes);
  if (state_ != State::kHead) return state_;
  // Empty lines before a request are allowed.
  while (head_.empty() && !bytes.empty() && (bytes.front() == '\r' || bytes.front() == '\n')) {
    bytes.remove_prefix(1);
  }
  const size_t room = static_cast<size_t>(kHttpHeadBytesMax) + 1 - head_.size();
  const std::string_view taken = bytes.substr(0, room);
  head_.append(taken);
  // The head ends at an empty line: "\n\n" or "\n\r\n".
  for (size_t i = head_.find('\n', scanned_); i != std::string::npos; i = head_.find('\n', i + 1)) {
    size_t end = i + 1;
    if (end < head_.size() && head_[end] == '\r') ++end;
    if (end >= head_.size()) {
      scanned_ = i;
      break;
    }
    scanned_ = i + 1;
    if (head_[end] != '\n') continue;
    const size_t num_body = head_.size() - (end + 1);
    head_.resize(i);
    if (read_head() == State::kFailed) return state_;
    bytes.remove_prefix(taken.size() - num_body);
    return state_ == State::kBody ? push_body(bytes) : state_;
  }
  if (static_cast<int64_t>(head_.size()) > kHttpHeadBytesMax) {
    return fail(431, str_cat("the request's head is larger than ", kHttpHeadBytesMax, " bytes"));
  }
  return state_;
}

HttpRequestReader::State HttpRequestReader::read_head() {
  std::string_view rest = head_;
  bool is_first = true;
  while (!rest.empty() || is_first) {
    const size_t end = rest.find('\n');
    const std::string_view line = without_cr(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if ((is_first ? read_request_line(line) : read_header(line)) == State::kFailed) return state_;
    is_first = false;
  }
  head_ = {};
  return begin_body();
}

HttpRequestReader::State HttpRequestReader::read_request_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return fail(400, "the request line is not METHOD TARGET VERSION");
  }
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method) || method.size() > kMethodBytesMax) return fail(400, "bad request method");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return fail(version.starts_with("HTTP/") ? 505 : 400, "only HTTP/1.1 and HTTP/1.0 are spoken");
  }
  if (static_cast<int64_t>(target.size()) > kHttpTargetBytesMax) {
    return fail(414, str_cat("the request target is longer than ", kHttpTargetBytesMax, " bytes"));
  }
  if (target.empty() || (target.front() != '/' && target != "*") || has_control(target) ||
      target.find(' ') != std::string_view::npos) {
    return fail(400, "the request target must be a path");
  }
  request_.method = method;
  const size_t query = target.find('?');
  if (query != std::string_view::npos) {
    request_.query = target.substr(query + 1);
    target = target.substr(0, query);
  }
  request_.path = target;
  return state_;
}

HttpRequestReader::State HttpRequestReader::read_header(std::string_view line) {
  if (static_cast<int64_t>(request_.headers.size()) >= kHttpHeadersMax) {
    return fail(431, str_cat("more than ", kHttpHeadersMax, " headers"));
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return fail(400, "a header line is not NAME: VALUE");
  }
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = trim(line.substr(colon + 1));
  if (has_control(value)) return fail(400, str_cat("control characters in the header ", name));
  if (name == "content-length") {
    if (content_length_ >= 0) return fail(400, "Content-Length is there twice");
    content_length_ = parse_length(value);
    if (content_length_ < 0) return fail(400, "Content-Length is no number");
  } else if (name == "transfer-encoding") {
    if (is_chunked_ || lower(value) != "chunked") {
      return fail(400, "the only Transfer-Encoding understood is chunked, once");
    }
    is_chunked_ = true;
  } else if (name == "expect") {
    if (lower(value) != "100-continue") return fail(417, "unknown expectation");
    wants_continue_ = true;
  }
  request_.headers.emplace_back(name, value);
  return state_;
}

HttpRequestReader::State HttpRequestReader::begin_body() {
  if (is_chunked_ && content_length_ >= 0) {
    return fail(400, "Content-Length together with Transfer-Encoding");
  }
  if (content_length_ > kHttpBodyBytesMax) {
    return fail(413, str_cat("the body is larger than ", kHttpBodyBytesMax, " bytes"));
  }
  const bool needs_length =
      request_.method == "POST" || request_.method == "PUT" || request_.method == "PATCH";
  if (needs_length && !is_chunked_ && content_length_ < 0) {
    return fail(411, "the request has neither Content-Length nor chunks");
  }
  state_ = State::kBody;
  if (is_chunked_) {
    part_ = Part::kChunkSize;
    return state_;
  }
  part_ = Part::kLength;
  left_ = std::max<int64_t>(content_length_, 0);
  return state_ = left_ == 0 ? State::kDone : State::kBody;
}

bool HttpRequestReader::take_line(std::string_view& bytes, size_t bytes_max) {
  const size_t end = bytes.find('\n');
  const bool is_complete = end != std::string_view::npos;
  const std::string_view taken = bytes.substr(0, is_complete ? end + 1 : bytes.size());
  bytes.remove_prefix(taken.size());
  if (line_.size() + taken.size() > bytes_max) {
    fail(400, "a line of the chunked body is too long");
    return false;
  }
  line_.append(taken);
  if (!is_complete) return false;
  line_.pop_back();
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  return true;
}

HttpRequestReader::State HttpRequestReader::read_chunk_size() {
  const std::string_view text = trim(std::string_view(line_).substr(0, line_.find(';')));
  if (text.empty() || text.size() > 16) return fail(400, "bad chunk size");
  left_ = 0;
  for (const char c : text) {
    const int digit = hex_digit(c);
    if (digit < 0) return fail(400, "bad chunk size");
    if (left_ > kHttpBodyBytesMax) break;
    left_ = left_ * 16 + digit;
  }
  if (body_bytes() + left_ > kHttpBodyBytesMax) {
    return fail(413, str_cat("the body is larger than ", kHttpBodyBytesMax, " bytes"));
  }
  part_ = left_ == 0 ? Part::kTrailer : Part::kChunk;
  return state_;
}

HttpRequestReader::State HttpRequestReader::push_body(std::string_view bytes) {
  while (!bytes.empty() && state_ == State::kBody) {
    switch (part_) {
      case Part::kLength:
      case Part::kChunk: {
        const auto size = static_cast<size_t>(std::min<int64_t>(left_, std::ssize(bytes)));
        request_.body.append(bytes.substr(0, size));
        bytes.remove_prefix(size);
        left_ -= static_cast<int64_t>(size);
        if (left_ > 0) break;
        if (part_ == Part::kLength) return state_ = State::kDone;
        part_ = Part::kChunkEnd;
        break;
      }
      case Part::kChunkEnd:
        if (!take_line(bytes, 2)) break;
        if (!line_.empty()) return fail(400, "a chunk is longer than its size");
        part_ = Part::kChunkSize;
        break;
      case Part::kChunkSize:
        if (!take_line(bytes, kChunkLineBytesMax)) break;
        read_chunk_size();
        line_.clear();
        break;
      case Part::kTrailer:
        if (!take_line(bytes, static_cast<size_t>(kTrailerBytesMax))) break;
        if (line_.empty()) return state_ = State::kDone;
        trailer_bytes_ += static_cast<int64_t>(line_.size());
        if (trailer_bytes_ > kTrailerBytesMax) return fail(400, "the trailer is too long");
        line_.clear();
        break;
    }
  }
  return state_;
}

}  // namespace tandem::api
