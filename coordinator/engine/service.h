#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"
#include "coordinator/engine/engine.h"

namespace tandem {

/// What the engine was doing after its last step.
struct EngineSnapshot {
  EngineStats stats;
  std::vector<BankDirectory::BankInfo> banks;
  bool stopping = false;
};

/// The thread that owns an engine. Others hand it requests through a bounded queue and hear of them
/// through their listeners, which this thread calls.
///
/// A request is taken between two steps, so that a caller never waits for a forward pass.
/// Threads: any, except that a listener must not call stop().
class EngineService {
 public:
  /// Takes over `engine`, which outlives the service. `queue_max` bounds the requests that wait: as
  /// many as there are banks may be open besides.
  EngineService(Engine& engine, int64_t queue_max);
  EngineService(const EngineService&) = delete;
  EngineService& operator=(const EngineService&) = delete;
  /// As stop() without a grace period.
  ~EngineService();

  /// Queues a request. What the engine refuses about it reaches the listener as kError. A request
  /// is open from here until its listener is told that it finished, so that whether the queue is
  /// full never depends on how far the thread is.
  /// Errors: kResourceExhausted if the queue is full, kUnavailable once stop() was called.
  Status submit(GenerationRequest request);

  EngineSnapshot snapshot() const;
  int64_t context_tokens() const { return context_tokens_; }

  /// Refuses new requests, ends those that wait for a bank, lets the others run for `grace`, ends
  /// what is left, and joins the thread. Those that are ended hear kError with kUnavailable.
  void stop(std::chrono::milliseconds grace);

 private:
  class OpenRequest;

  void run();
  void note_end();
  /// Takes what was submitted. False: the thread is to end.
  bool take_requests(std::unique_lock<std::mutex>& lock);
  void refuse(const std::shared_ptr<GenerationListener>& listener, const Status& status);
  void publish();

  Engine& engine_;
  const int64_t open_max_;
  const int64_t context_tokens_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<GenerationRequest> submitted_;
  int64_t num_open_ = 0;
  EngineSnapshot snapshot_;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point end_at_{};

  // Of the thread alone.
  std::vector<GenerationRequest> taken_;
  bool has_work_ = false;

  std::thread thread_;  // last: starts when all else is there
};

}  // namespace tandem
