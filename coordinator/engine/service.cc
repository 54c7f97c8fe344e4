#include "coordinator/engine/service.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tandem {
namespace {

Status shutting_down() {
  return {StatusCode::kUnavailable, "the server is shutting down; try again later"};
}

}  // namespace

/// Passes all on, and counts the request out just before its listener hears the end: whoever has
/// heard it finds the place free.
class EngineService::OpenRequest final : public GenerationListener {
 public:
  OpenRequest(EngineService& service, std::shared_ptr<GenerationListener> listener)
      : service_(service), listener_(std::move(listener)) {}

  void on_prefill(int64_t done, int64_t total, int64_t cached) override {
    listener_->on_prefill(done, total, cached);
  }
  void on_token(const TokenStep& step) override { listener_->on_token(step); }
  void on_finish(const GenerationResult& result, std::span<const Event> events) override {
    service_.note_end();
    listener_->on_finish(result, events);
  }
  bool cancelled() const override { return listener_->cancelled(); }

 private:
  EngineService& service_;
  std::shared_ptr<GenerationListener> listener_;
};

EngineService::EngineService(Engine& engine, int64_t queue_max)
    : engine_(engine),
      open_max_(engine.num_banks() + queue_max),
      context_tokens_(engine.context_tokens()),
      thread_([this] { run(); }) {}

EngineService::~EngineService() {
  stop(std::chrono::milliseconds(0));
}

Status EngineService::submit(GenerationRequest request) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return shutting_down();
    if (num_open_ >= open_max_) {
      return Status(
          StatusCode::kResourceExhausted,
          str_cat(num_open_, " requests run or wait already; try again later"));
    }
    request.listener = std::make_shared<OpenRequest>(*this, std::move(request.listener));
    submitted_.push_back(std::move(request));
    ++num_open_;
  }
  wake_.notify_one();
  return {};
}

void EngineService::note_end() {
  const std::lock_guard lock(mutex_);
  --num_open_;
}

EngineSnapshot EngineService::snapshot() const {
  const std::lock_guard lock(mutex_);
  EngineSnapshot out = snapshot_;
  out.stats.num_running = std::min(out.stats.num_running, num_open_);
  out.stats.num_waiting = num_open_ - out.stats.num_running;
  out.stopping = stopping_;
  return out;
}

void EngineService::stop(std::chrono::milliseconds grace) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) end_at_ = std::chrono::steady_clock::now() + grace;
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void EngineService::refuse(
    const std::shared_ptr<GenerationListener>& listener, const Status& status) {
  GenerationResult result;
  result.reason = FinishReason::kError;
  result.status = status;
  listener->on_finish(result, {});
}

bool EngineService::take_requests(std::unique_lock<std::mutex>& lock) {
  if (!has_work_) wake_.wait(lock, [&] { return stopping_ || !submitted_.empty(); });
  taken_.clear();
  taken_.swap(submitted_);
  if (!stopping_) return true;
  const bool is_late = std::chrono::steady_clock::now() >= end_at_;
  lock.unlock();
  for (const GenerationRequest& request : taken_) refuse(request.listener, shutting_down());
  taken_.clear();
  engine_.end_waiting(shutting_down());
  if (is_late) engine_.end_all(shutting_down());
  lock.lock();
  return has_work_ && !is_late;
}

void EngineService::run() {
  publish();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (!take_requests(lock)) break;
    }
    for (GenerationRequest& request : taken_) {
      const std::shared_ptr<GenerationListener> listener = request.listener;
      const Status status = engine_.submit(std::move(request));
      if (!status.ok()) refuse(listener, status);
    }
    has_work_ = engine_.step();
    publish();
  }
  publish();
  log_info("engine", "service_stopped");
}

void EngineService::publish() {
  const std::lock_guard lock(mutex_);
  snapshot_.stats = engine_.stats();
  engine_.describe_banks(snapshot_.banks);
}

}  // namespace tandem
