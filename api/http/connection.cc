#include "api/http/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace tandem::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLinger{500};
constexpr size_t kLingerBytesMax = 1 << 20;

/// The events that came, 0 after the timeout.
short wait_for(int fd, short events, milliseconds timeout) {
  pollfd entry{fd, events, 0};
  const auto end = steady_clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now()).count();
    const int count = ::poll(&entry, 1, left > 0 ? static_cast<int>(left) : 0);
    if (count > 0) return entry.revents;
    if (count == 0 || errno != EINTR) return 0;
  }
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Connection::Connection(int fd) : fd_(fd) {
  // A refusal of these costs latency or a wakeup, no more.
  (void)::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  (void)::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Connection::~Connection() {
  (void)::close(fd_);
}

Result<size_t> Connection::read(char* out, size_t size, milliseconds timeout) {
  const auto end = steady_clock::now() + timeout;
  for (;;) {
    const ssize_t count = ::recv(fd_, out, size, 0);
    if (count >= 0) return static_cast<size_t>(count);
    if (!would_block(errno)) {
      return Status(StatusCode::kUnavailable, str_cat("read: ", errno_text(errno)));
    }
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    if (left.count() <= 0 || wait_for(fd_, POLLIN, left) == 0) {
      return Status(StatusCode::kDeadlineExceeded, "the client sends nothing");
    }
  }
}

Status Connection::write(std::string_view bytes) {
  if (is_broken_) return {StatusCode::kUnavailable, "the connection is broken"};
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
      continue;
    }
    if (!would_block(errno)) {
      is_broken_ = true;
      return {StatusCode::kUnavailable, str_cat("write: ", errno_text(errno))};
    }
    if (wait_for(fd_, POLLOUT, kWriteStall) == 0) {
      is_broken_ = true;
      return {StatusCode::kDeadlineExceeded, "the client takes nothing"};
    }
  }
  return {};
}

Connection::Peer Connection::peer() const {
  if (is_broken_) return Peer::kGone;
  const short events = wait_for(fd_, POLLRDHUP, milliseconds(0));
  if ((events & (POLLERR | POLLHUP | POLLNVAL)) != 0) return Peer::kGone;
  return (events & POLLRDHUP) != 0 ? Peer::kHalfClosed : Peer::kThere;
}

void Connection::linger() {
  (void)::shutdown(fd_, SHUT_WR);
  char dropped[4096];
  const auto end = steady_clock::now() + kLinger;
  for (size_t total = 0; total < kLingerBytesMax;) {
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    if (left.count() <= 0) return;
    const auto count = read(dropped, sizeof(dropped), left);
    if (!count.ok() || *count == 0) return;
    total += *count;
  }
}

}  // namespace tandem::api
