#include "tests/support/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tandem::test {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

RawClient::RawClient(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
      << errno_text(errno);
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::string RawClient::read_until(std::string_view until, milliseconds timeout) {
  std::string out;
  const auto end = steady_clock::now() + timeout;
  char buffer[16384];
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now()).count();
    pollfd entry{fd_, POLLIN, 0};
    if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left)) <= 0) return out;
    const ssize_t count = ::recv(fd_, buffer, sizeof(buffer), 0);
    if (count <= 0) {
      saw_end_ = true;
      return out;
    }
    out.append(buffer, static_cast<size_t>(count));
    if (!until.empty() && out.find(until) != std::string::npos) return out;
  }
}

void RawClient::shut_down_sending() {
  (void)::shutdown(fd_, SHUT_WR);
}

void RawClient::close() {
  if (fd_ >= 0) (void)::close(fd_);
  fd_ = -1;
}

std::string HttpAnswer::header(std::string_view name) const {
  const std::string line = str_cat("\r\n", name, ": ");
  const size_t at = head.find(line);
  if (at == std::string::npos) return {};
  const size_t start = at + line.size();
  return head.substr(start, head.find("\r\n", start) - start);
}

api::Json HttpAnswer::json() const {
  auto parsed = api::parse_json(body);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message() << "\n" << body;
  return parsed.ok() ? *parsed : api::Json();
}

HttpAnswer parse_answer(const std::string& bytes) {
  HttpAnswer out;
  std::string_view rest = bytes;
  // Interim answers come before the one that counts.
  while (rest.starts_with("HTTP/1.1 1")) {
    const size_t end = rest.find("\r\n\r\n");
    if (end == std::string_view::npos) return out;
    rest.remove_prefix(end + 4);
  }
  const size_t end = rest.find("\r\n\r\n");
  if (end == std::string_view::npos || !rest.starts_with("HTTP/1.1 ")) return out;
  out.status = std::atoi(std::string(rest.substr(9, 3)).c_str());
  out.head = std::string(rest.substr(0, end + 2));
  out.body = std::string(rest.substr(end + 4));
  return out;
}

std::string http_request(
    std::string_view method, std::string_view path, std::string_view body, const Headers& headers) {
  std::string out = str_cat(method, " ", path, " HTTP/1.1\r\nHost: test\r\n");
  for (const auto& [name, value] : headers) out += str_cat(name, ": ", value, "\r\n");
  if (method == "POST") out += str_cat("Content-Length: ", body.size(), "\r\n");
  out += "\r\n";
  out += body;
  return out;
}

HttpAnswer http_get(int port, std::string_view path, const Headers& headers) {
  RawClient client(port);
  client.send(http_request("GET", path, {}, headers));
  return parse_answer(client.read_all());
}

HttpAnswer http_post(
    int port, std::string_view path, std::string_view body, const Headers& headers) {
  RawClient client(port);
  client.send(http_request("POST", path, body, headers));
  return parse_answer(client.read_all());
}

std::vector<RawEvent> raw_events(std::string_view body) {
  std::vector<RawEvent> out;
  RawEvent current;
  bool has_lines = false;
  while (!body.empty()) {
    const size_t end = body.find('\n');
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(end == std::string_view::npos ? body.size() : end + 1);
    if (line.empty()) {
      if (has_lines) out.push_back(std::exchange(current, {}));
      has_lines = false;
      continue;
    }
    has_lines = true;
    if (line.starts_with(":")) current.event.assign(1, ':');
    if (line.starts_with("event: ")) current.event = line.substr(7);
    if (line.starts_with("data: ")) current.data += line.substr(6);
  }
  return out;
}

}  // namespace tandem::test
