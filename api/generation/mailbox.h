#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coordinator/engine/generation.h"

namespace tandem::api {

/// What the engine told about one choice.
struct Mail {
  enum class Kind { kPrefill, kToken, kFinish };
  Kind kind = Kind::kToken;
  int choice_idx = 0;
  std::vector<Event> events;
  Choice choice;            // of kToken
  GenerationResult result;  // of kFinish
  int64_t prompt_done = 0;  // of kPrefill
  int64_t prompt_total = 0;
  int64_t prompt_cached = 0;
};

/// Carries what the engine's thread reports to the thread that answers a client. Bounded: a reader
/// that falls kUnreadBytesMax behind ends its generation.
/// Threads: the engine's thread posts, one other waits.
class Mailbox {
 public:
  void post(Mail mail);
  /// Takes what has come, waiting up to `timeout` for the first. False: nothing came.
  bool wait(std::vector<Mail>& out, std::chrono::milliseconds timeout);

  /// Ends the generations at their next step.
  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }
  bool overflowed() const { return overflowed_; }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Mail> mails_;
  int64_t unread_bytes_ = 0;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> overflowed_{false};
};

/// Posts one choice's generation.
class MailListener final : public GenerationListener {
 public:
  MailListener(std::shared_ptr<Mailbox> mailbox, int choice_idx)
      : mailbox_(std::move(mailbox)), choice_idx_(choice_idx) {}

  void on_prefill(int64_t done, int64_t total, int64_t cached) override;
  void on_token(const TokenStep& step) override;
  void on_finish(const GenerationResult& result, std::span<const Event> events) override;
  bool cancelled() const override { return ended_ || mailbox_->cancelled(); }

  /// Ends this choice alone. Threads: any.
  void end() { ended_ = true; }

 private:
  std::shared_ptr<Mailbox> mailbox_;
  int choice_idx_;
  std::atomic<bool> ended_{false};
};

}  // namespace tandem::api
