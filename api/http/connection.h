#pragma once

#include <chrono>
#include <string_view>

#include "base/status.h"

namespace tandem::api {

/// An accepted socket, owned. Never blocks without a deadline.
/// Threads: one owner.
class Connection {
 public:
  explicit Connection(int fd);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  int fd() const { return fd_; }

  /// Waits up to `timeout` for bytes and reads what is there. 0: the peer has closed its side.
  /// Errors: kDeadlineExceeded, kUnavailable if the connection is broken.
  Result<size_t> read(char* out, size_t size, std::chrono::milliseconds timeout);
  /// Writes all of it. Errors: kDeadlineExceeded if the peer takes nothing for kWriteStall,
  /// kUnavailable if it is gone. After an error nothing more is written.
  Status write(std::string_view bytes);

  enum class Peer {
    kThere,
    kHalfClosed,  // sends nothing more; may read still
    kGone,        // reset, or a write failed
  };
  Peer peer() const;

  /// Ends the connection so that the peer can still read the answer although it has sent more than
  /// was read: closes the writing side and drops what comes for a short while.
  void linger();

  static constexpr std::chrono::milliseconds kWriteStall{2000};

 private:
  int fd_;
  bool is_broken_ = false;
};

}  // namespace tandem::api
