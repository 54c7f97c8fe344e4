#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/json/json.h"

namespace tandem::test {

/// A TCP connection to a server on this machine; every call has a deadline and a failure fails the
/// running test.
class RawClient {
 public:
  explicit RawClient(int port);
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { close(); }

  /// False: the server does not take it any more.
  bool send(std::string_view bytes);
  /// What has come until `until` is among it, the server closes, or the time is up.
  std::string read_until(
      std::string_view until, std::chrono::milliseconds timeout = std::chrono::seconds(20));
  /// Everything until the server closes.
  std::string read_all(std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    return read_until({}, timeout);
  }
  bool saw_end() const { return saw_end_; }
  void shut_down_sending();
  /// Sends a FIN, like a program that ends in order.
  void close();

 private:
  int fd_;
  bool saw_end_ = false;
};

struct HttpAnswer {
  int status = 0;
  std::string head;
  std::string body;

  /// The value of a header, or empty. `name` as the server writes it.
  std::string header(std::string_view name) const;
  api::Json json() const;
};

/// Splits what a server sent.
HttpAnswer parse_answer(const std::string& bytes);

using Headers = std::vector<std::pair<std::string, std::string>>;
HttpAnswer http_get(int port, std::string_view path, const Headers& headers = {});
HttpAnswer http_post(
    int port, std::string_view path, std::string_view body, const Headers& headers = {});
/// The bytes of a request.
std::string http_request(
    std::string_view method, std::string_view path, std::string_view body,
    const Headers& headers = {});

struct RawEvent {
  std::string event;  // empty: none
  std::string data;
};
/// The events of a stream; comments are events named ":".
std::vector<RawEvent> raw_events(std::string_view body);

}  // namespace tandem::test
