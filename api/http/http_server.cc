#include "api/http/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <thread>

#include "api/http/reply_writer.h"
#include "base/log.h"

namespace tandem::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kBacklog = 128;
constexpr milliseconds kProbeInterval{1000};
constexpr milliseconds kAcceptPause{10};  // when descriptors are short

bool is_loopback_any(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

}  // namespace

void HttpExchange::stream(std::string content_type, std::function<void(StreamWriter&)> body) {
  reply_.content_type = std::move(content_type);
  stream_ = std::move(body);
}

bool HttpExchange::waits_for_reply() {
  switch (connection_.peer()) {
    case Connection::Peer::kThere: return true;
    case Connection::Peer::kGone: return false;
    case Connection::Peer::kHalfClosed: break;
  }
  const auto now = steady_clock::now();
  if (now - probed_ < kProbeInterval) return true;
  probed_ = now;
  return connection_.write("HTTP/1.1 102 Processing\r\n\r\n").ok();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(
    const HttpOptions& options, HttpHandler& handler) {
  std::unique_ptr<HttpServer> server(new HttpServer(options, handler));
  TANDEM_TRY(server->bind());
  return server;
}

Status HttpServer::bind() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(options_.port);
  const int error = ::getaddrinfo(options_.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    return {StatusCode::kUnavailable, str_cat("host ", options_.host, ": ", ::gai_strerror(error))};
  }
  std::string problem = "no address";
  for (const addrinfo* at = found; at != nullptr && listen_fd_ < 0; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    const int on = 1;
    if (fd >= 0 && ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        ::bind(fd, at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) {
      listen_fd_ = fd;
    } else {
      problem = errno_text(errno);
      if (fd >= 0) (void)::close(fd);
    }
  }
  ::freeaddrinfo(found);
  if (listen_fd_ < 0) {
    return {
        StatusCode::kUnavailable, str_cat(
                                      "cannot listen on ", options_.host, ":", options_.port, ": ",
                                      problem, "; name another --port, or 0 for any free one")};
  }
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return {StatusCode::kUnavailable, str_cat("getsockname: ", errno_text(errno))};
  }
  port_ = ntohs(
      address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                    : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC);
  if (wake_fd_ < 0) return {StatusCode::kUnavailable, str_cat("eventfd: ", errno_text(errno))};
  return {};
}

HttpServer::~HttpServer() {
  if (listen_fd_ >= 0) (void)::close(listen_fd_);
  if (wake_fd_ >= 0) (void)::close(wake_fd_);
}

std::string HttpServer::url() const {
  const std::string& host = is_loopback_any(options_.host) ? "localhost" : options_.host;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return str_cat("http://", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", ":", port_);
}

void HttpServer::stop() {
  stopping_ = true;
  const uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof(one));
}

void HttpServer::serve() {
  while (!stopping_) {
    pollfd entries[2] = {{listen_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    if (::poll(entries, 2, -1) < 0 && errno != EINTR) {
      log_error("api", "poll_failed", {{"error", errno_text(errno)}});
      break;
    }
    if (!stopping_ && (entries[0].revents & POLLIN) != 0) accept_one();
  }
  (void)::close(listen_fd_);
  listen_fd_ = -1;
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return num_clients_ == 0; });
}

void HttpServer::accept_one() {
  const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) {
    // Whatever the reason, listening goes on; a short pause where descriptors or memory are short.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      log_warning("api", "accept_failed", {{"error", errno_text(errno)}});
      std::this_thread::sleep_for(kAcceptPause);
    }
    return;
  }
  if (num_clients_ >= options_.clients_max) {
    ++num_shed_clients_;
    Connection connection(fd);
    ApiError error;
    error.http_status = 503;
    error.message =
        str_cat(options_.clients_max, " clients are connected already; try again later");
    error.code = "clients";
    error.retry_after_s = 10;
    // Without linger(): the thread that accepts must not wait for anybody.
    write_reply(connection, handler_.refuse(error, {}), options_.cors);
    return;
  }
  ++num_clients_;
  try {
    std::thread([this, fd] { serve_connection(fd); }).detach();
  } catch (const std::exception& error) {  // no more threads
    log_warning("api", "thread_failed", {{"error", error.what()}});
    (void)::close(fd);
    --num_clients_;
  }
}

void HttpServer::answer_error(
    Connection& connection, const ApiError& error, std::string_view path) {
  write_reply(connection, handler_.refuse(error, path), options_.cors);
  connection.linger();
}

bool HttpServer::read_request(Connection& connection, HttpRequestReader& reader, int64_t& charged) {
  std::string buffer(16 << 10, '\0');
  const auto started = steady_clock::now();
  using State = HttpRequestReader::State;
  while (reader.state() == State::kHead || reader.state() == State::kBody) {
    const bool in_head = reader.state() == State::kHead;
    const auto end = started + (in_head ? options_.head_timeout : options_.body_timeout);
    auto wait = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    if (!in_head) wait = std::min(wait, options_.body_idle_timeout);
    const auto count = connection.read(buffer.data(), buffer.size(), wait);
    if (!count.ok() || *count == 0) {
      if (!count.ok() && count.status().code() == StatusCode::kDeadlineExceeded) {
        ApiError error;
        error.http_status = 408;
        error.message = in_head ? "the request's head did not come in time"
                                : "the request's body did not come in time";
        answer_error(connection, error, reader.request().path);
      }
      return false;
    }
    reader.push(std::string_view(buffer).substr(0, *count));
    const int64_t more = reader.body_bytes() - charged;
    charged += more;
    if ((bodies_bytes_ += more) > options_.bodies_bytes_max) {
      ++num_shed_bodies_;
      ApiError error;
      error.http_status = 429;
      error.message =
          "the bodies of the requests in flight are too large together; try again later";
      error.code = "queue_bytes";
      error.retry_after_s = 5;
      answer_error(connection, error, reader.request().path);
      return false;
    }
    if (reader.take_continue() && !connection.write("HTTP/1.1 100 Continue\r\n\r\n").ok()) {
      return false;
    }
  }
  if (reader.state() == State::kDone) return true;
  answer_error(connection, reader.error(), reader.request().path);
  return false;
}

void HttpServer::serve_connection(int fd) {
  int64_t charged = 0;
  try {
    Connection connection(fd);
    HttpRequestReader reader;
    if (read_request(connection, reader, charged)) {
      const HttpRequest request = reader.take();
      answer_request(connection, request, handler_, options_.cors);
      connection.linger();
    }
  } catch (const std::exception& error) {  // memory; the other connections go on
    log_error("api", "connection_failed", {{"error", error.what()}});
  }
  bodies_bytes_ -= charged;
  const std::lock_guard lock(mutex_);
  --num_clients_;
  ended_.notify_all();
}

}  // namespace tandem::api
