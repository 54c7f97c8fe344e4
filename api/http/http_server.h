#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/http/connection.h"
#include "api/http/request_reader.h"
#include "base/status.h"

namespace tandem::api {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpReply {
  int status = 200;
  std::string content_type;  // empty: the reply has no body
  std::string body;
  HttpHeaders headers;
};

/// Writes a stream's bytes; they are sent at once.
class StreamWriter {
 public:
  virtual ~StreamWriter() = default;
  /// False: the client is gone or too slow, now and from now on.
  virtual bool write(std::string_view bytes) = 0;
};

/// The answer to one request, and what can be asked about who waits for it.
class HttpExchange {
 public:
  HttpExchange(const HttpRequest& request, Connection& connection)
      : request_(request), connection_(connection) {}

  const HttpRequest& request() const { return request_; }
  void reply(HttpReply reply) { reply_ = std::move(reply); }
  /// Answers 200 with a body that `body` writes until it returns.
  void stream(std::string content_type, std::function<void(StreamWriter&)> body);

  /// Whether the client waits for a whole reply still. A client that only closed its sending side
  /// does; one that went away shows by the reset that an interim response makes it send, which is
  /// noticed in a later call. At most one interim response a second is sent.
  bool waits_for_reply();
  /// Whether the client reads a stream still. One that closed its side has gone.
  bool reads_stream() const { return connection_.peer() == Connection::Peer::kThere; }

  HttpReply& reply() { return reply_; }
  const std::function<void(StreamWriter&)>& stream_body() const { return stream_; }

 private:
  const HttpRequest& request_;
  Connection& connection_;
  HttpReply reply_;
  std::function<void(StreamWriter&)> stream_;
  std::chrono::steady_clock::time_point probed_{};
};

/// Answers requests.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  /// Called from many threads at once. Returns when the reply is set.
  virtual void handle(HttpExchange& exchange) = 0;
  /// A request that was refused before it could be handled. `path` is empty if it was not read.
  virtual HttpReply refuse(const ApiError& error, std::string_view path) = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: any free one
  bool cors = false;
  int64_t clients_max = kHttpClientsMax;
  int64_t bodies_bytes_max = kHttpBodiesBytesMax;
  std::chrono::milliseconds head_timeout{10000};       // from the connection to the whole head
  std::chrono::milliseconds body_idle_timeout{10000};  // without a byte
  std::chrono::milliseconds body_timeout{300000};      // for the whole body
};

/// The sockets: accepts, reads requests within bounds, answers, closes. One thread a connection,
/// one request a connection.
///
/// cpp-httplib frames and writes the replies. It never sees a client's own bytes: its reading side
/// bounds neither a header line nor the number of headers, has no deadline for a whole head, and
/// takes contradicting lengths; so HttpRequestReader reads, and hands it a request written anew.
class HttpServer {
 public:
  /// Binds and listens. `handler` outlives the server.
  /// Errors: kUnavailable names the address.
  static Result<std::unique_ptr<HttpServer>> listen(
      const HttpOptions& options, HttpHandler& handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  int port() const { return port_; }
  /// "http://127.0.0.1:8000".
  std::string url() const;

  /// Accepts connections until stop(), then waits until those that are open have ended.
  void serve();
  /// Ends serve(). Threads: any.
  void stop();

  int64_t num_clients() const { return num_clients_.load(); }
  int64_t bodies_bytes() const { return bodies_bytes_.load(); }
  int64_t num_shed_clients() const { return num_shed_clients_.load(); }
  int64_t num_shed_bodies() const { return num_shed_bodies_.load(); }

 private:
  HttpServer(HttpOptions options, HttpHandler& handler)
      : options_(std::move(options)), handler_(handler) {}
  Status bind();
  void accept_one();
  void serve_connection(int fd);
  /// Reads a request. False: it was refused, and answered if the client can still hear.
  bool read_request(Connection& connection, HttpRequestReader& reader, int64_t& charged);
  void answer_error(Connection& connection, const ApiError& error, std::string_view path);

  const HttpOptions options_;
  HttpHandler& handler_;
  int listen_fd_ = -1;
  int wake_fd_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> num_clients_{0};
  std::atomic<int64_t> bodies_bytes_{0};
  std::atomic<int64_t> num_shed_clients_{0};
  std::atomic<int64_t> num_shed_bodies_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
};

}  // namespace tandem::api
