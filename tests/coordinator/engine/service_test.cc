// The thread that owns the engine, over a stage whose steps can be held.

#include "coordinator/engine/service.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

#include "coordinator/engine/loaded_model.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_stage.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"
#include "tests/support/step_gate.h"

namespace tandem {
namespace {

const LoadedModel& nano() {
  static const LoadedModel loaded = [] {
    auto made = load_model(test::repo_path("models/nano-q4_k.gguf"));
    TANDEM_CHECK(made.ok());
    return std::move(made).value();
  }();
  return loaded;
}

/// Promises the end, after `at_end` was called on the engine's thread.
class EndListener final : public GenerationListener {
 public:
  void on_token(const TokenStep& /*step*/) override {}
  void on_finish(const GenerationResult& result, std::span<const Event> /*events*/) override {
    if (at_end) at_end();
    end_.set_value(result);
  }
  GenerationResult wait() { return end_.get_future().get(); }

  std::function<void()> at_end;

 private:
  std::promise<GenerationResult> end_;
};

class ServiceTest : public ::testing::Test {
 protected:
  ~ServiceTest() override { gate_.open(); }

  void start(int64_t num_banks, int64_t queue_max) {
    auto stage = std::make_unique<test::FakeStage>(
        test::whole_stage_info(nano().tokenizer->size(), num_banks, 512, 256));
    stage->before_step = [this](const StepBatch&) {
      gate_.pass();
      return Status();
    };
    std::vector<std::unique_ptr<StageExecutor>> stages;
    stages.push_back(std::move(stage));
    auto pipeline = Pipeline::create(std::move(stages));
    TANDEM_CHECK(pipeline.ok());
    pipeline_ = std::make_unique<Pipeline>(std::move(pipeline).value());
    engine_ = std::make_unique<Engine>(
        *pipeline_, nano().tokenizer, *nano().protocol, clock_, EngineOptions{});
    service_ = std::make_unique<EngineService>(*engine_, queue_max);
  }

  Status submit(const std::shared_ptr<EndListener>& listener) {
    GenerationRequest request;
    request.prompt = {100, 101, 102};
    request.max_tokens = 2;
    request.ignore_stop_tokens = true;
    request.listener = listener;
    return service_->submit(std::move(request));
  }
  std::shared_ptr<EndListener> submitted() {
    auto listener = std::make_shared<EndListener>();
    EXPECT_OK(submit(listener));
    return listener;
  }

  test::FakeClock clock_;
  test::StepGate gate_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EngineService> service_;
};

TEST_F(ServiceTest, RefusesBeyondTheQueueWhereverTheWaitingAre) {
  start(/*num_banks=*/1, /*queue_max=*/2);
  gate_.hold_after(0);
  std::vector<std::shared_ptr<EndListener>> accepted = {submitted()};
  ASSERT_TRUE(gate_.wait_until_held());
  accepted.push_back(submitted());
  accepted.push_back(submitted());
  const auto extra = std::make_shared<EndListener>();
  // Two are submitted.
  EXPECT_ERROR(submit(extra), StatusCode::kResourceExhausted, "3 requests run or wait");
  // After one more step, the engine has taken them, and no later snapshot is out.
  gate_.hold_after(1);
  ASSERT_TRUE(gate_.wait_until_held());
  EXPECT_ERROR(submit(extra), StatusCode::kResourceExhausted, "3 requests run or wait");
  EXPECT_EQ(service_->snapshot().stats.num_running, 1);
  EXPECT_EQ(service_->snapshot().stats.num_waiting, 2);
  gate_.open();
  for (const auto& listener : accepted) EXPECT_EQ(listener->wait().reason, FinishReason::kLength);
}

TEST_F(ServiceTest, DoesNotCountRequestsForFreeBanksAsWaiting) {
  start(/*num_banks=*/2, /*queue_max=*/0);
  gate_.hold_after(0);
  const auto first = submitted();
  const auto second = submitted();  // whether or not the engine has seen the first
  const auto extra = std::make_shared<EndListener>();
  EXPECT_ERROR(submit(extra), StatusCode::kResourceExhausted, "2 requests run or wait");
  gate_.open();
  EXPECT_EQ(first->wait().reason, FinishReason::kLength);
  EXPECT_EQ(second->wait().reason, FinishReason::kLength);
}

TEST_F(ServiceTest, WhoHearsTheEndFindsThePlaceFree) {
  start(/*num_banks=*/1, /*queue_max=*/0);
  const auto next = std::make_shared<EndListener>();
  const auto first = std::make_shared<EndListener>();
  Status status(StatusCode::kInternal, "was not submitted");
  first->at_end = [&] { status = submit(next); };
  EXPECT_OK(submit(first));
  (void)first->wait();
  EXPECT_OK(status);
  EXPECT_EQ(next->wait().reason, FinishReason::kLength);
}

TEST_F(ServiceTest, StoppingTellsThoseThatWaitAndFreesTheirPlaces) {
  start(/*num_banks=*/1, /*queue_max=*/2);
  gate_.hold_after(0);
  const auto running = submitted();
  ASSERT_TRUE(gate_.wait_until_held());
  const auto waiting = submitted();
  std::thread stopper([&] { service_->stop(std::chrono::minutes(1)); });
  // The thread cannot end before its step: only then is the gate to open.
  while (!service_->snapshot().stopping) std::this_thread::yield();
  EXPECT_ERROR(submit(waiting), StatusCode::kUnavailable, "shutting down");
  gate_.open();
  EXPECT_EQ(running->wait().reason, FinishReason::kLength);
  const GenerationResult ended = waiting->wait();
  EXPECT_EQ(ended.reason, FinishReason::kError);
  EXPECT_EQ(ended.status.code(), StatusCode::kUnavailable);
  stopper.join();
  EXPECT_EQ(service_->snapshot().stats.num_running + service_->snapshot().stats.num_waiting, 0);
}

}  // namespace
}  // namespace tandem
