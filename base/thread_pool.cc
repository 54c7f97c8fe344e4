#include "base/thread_pool.h"

#include "base/check.h"

namespace tandem {

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads) {
  TANDEM_CHECK(num_threads >= 1);
  threads_.reserve(static_cast<size_t>(num_threads - 1));
  for (int i = 1; i < num_threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_erased(Call call, void* context) {
  if (num_threads_ == 1) {
    call(context, 0);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    call_ = call;
    context_ = context;
    num_running_ = num_threads_ - 1;
    ++generation_;
  }
  start_.notify_all();
  call(context, 0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return num_running_ == 0; });
}

void ThreadPool::work(int thread_idx) {
  uint64_t seen = 0;
  for (;;) {
    Call call = nullptr;
    void* context = nullptr;
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
      call = call_;
      context = context_;
    }
    call(context, thread_idx);
    const std::lock_guard lock(mutex_);
    if (--num_running_ == 0) done_.notify_one();
  }
}

}  // namespace tandem
