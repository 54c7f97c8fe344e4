// The engine over a stage that is told what to answer and where to fail.
#include <numeric>

#include "base/checksum.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/loaded_model.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_stage.h"
#include "tests/support/nano.h"
#include "tests/support/paths.h"
#include "tests/support/recording_listener.h"
#include "tests/support/stages.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

using test::RecordingListener;
using Listener = std::shared_ptr<RecordingListener>;
using Tokens = std::vector<int32_t>;

class EngineFaultTest : public ::testing::Test {
 protected:
  EngineFaultTest() { build(2, 512, 256); }

  void build(int64_t num_banks, int64_t context, int64_t max_rows, EngineOptions options = {}) {
    engine_.reset();
    auto stage = std::make_unique<test::FakeStage>(test::whole_stage_info(
        test::loaded_nano().tokenizer->size(), num_banks, context, max_rows));
    stage_ = stage.get();
    std::vector<std::unique_ptr<StageExecutor>> stages;
    stages.push_back(std::move(stage));
    auto pipeline = Pipeline::create(std::move(stages));
    TANDEM_CHECK(pipeline.ok());
    pipeline_ = std::make_unique<Pipeline>(std::move(pipeline).value());
    options.fingerprint = "fake";
    engine_ = std::make_unique<Engine>(
        *pipeline_, test::loaded_nano().tokenizer, *test::loaded_nano().protocol, clock_, options);
  }

  static Tokens counting(int32_t first, int64_t count) {
    Tokens out(static_cast<size_t>(count));
    std::iota(out.begin(), out.end(), first);
    return out;
  }

  Listener submit(const Tokens& prompt, int64_t max_tokens) {
    auto listener = std::make_shared<RecordingListener>();
    EXPECT_OK(engine_->submit(request(prompt, max_tokens, listener)));
    return listener;
  }
  static GenerationRequest request(
      const Tokens& prompt, int64_t max_tokens, const Listener& listener) {
    GenerationRequest out;
    out.prompt = prompt;
    out.max_tokens = max_tokens;
    out.sampling.temperature = 0;
    out.listener = listener;
    return out;
  }
  Listener run(const Tokens& prompt, int64_t max_tokens) {
    Listener listener = submit(prompt, max_tokens);
    run_until_idle();
    return listener;
  }
  /// Fails the test instead of hanging.
  void run_until_idle() {
    for (int i = 0; i < 10000; ++i) {
      if (!engine_->step()) return;
    }
    FAIL() << "the engine never comes to rest";
  }

  test::FakeClock clock_;
  test::FakeStage* stage_ = nullptr;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineFaultTest, DoesNothingWithoutRequests) {
  EXPECT_FALSE(engine_->step());
  EXPECT_EQ(engine_->stats().steps, 0);
}

TEST_F(EngineFaultTest, GeneratesAsManyTokensAsAskedFor) {
  const Listener listener = run(counting(100, 10), 5);
  EXPECT_EQ(listener->tokens, counting(110, 5));
  EXPECT_EQ(listener->result.reason, FinishReason::kLength);
  EXPECT_EQ(listener->result.prompt_tokens, 10);
  EXPECT_EQ(listener->result.generated_tokens, 5);
  EXPECT_EQ(listener->num_finishes, 1);
  EXPECT_EQ(stage_->length(0), 14) << "the last token is not run";
  EXPECT_EQ(engine_->stats().requests_finished, 1);
  EXPECT_EQ(engine_->stats().prompt_tokens, 10);
  EXPECT_EQ(engine_->stats().generated_tokens, 5);
  EXPECT_EQ(engine_->stats().num_running, 0);
}

TEST_F(EngineFaultTest, RowsOfAPromptAreMarkedHoweverFewAreLeft) {
  run(counting(100, 257), 3);  // chunks of 256 and 1, then two tokens that are run
  std::vector<Phase> phases;
  for (const StepBatch& batch : stage_->steps) {
    for (const StepRow& row : batch.rows) phases.push_back(row.phase);
  }
  std::vector<Phase> expected(257, Phase::kPrefill);
  expected.resize(259, Phase::kDecode);
  EXPECT_EQ(phases, expected);
}

TEST_F(EngineFaultTest, OnlyReadsThePromptForNoTokens) {
  const Listener listener = run(counting(100, 300), 0);
  EXPECT_TRUE(listener->tokens.empty());
  EXPECT_EQ(listener->result.reason, FinishReason::kLength);
  EXPECT_EQ(listener->prefill_done.back(), 300);
  EXPECT_EQ(stage_->length(0), 300);
  EXPECT_EQ(run(counting(100, 310), 1)->result.cached_tokens, 300);
}

TEST_F(EngineFaultTest, StopsWhereTheContextEnds) {
  for (const int64_t max_tokens : {int64_t{-1}, int64_t{1000}}) {
    build(1, 64, 64);
    const Listener listener = run(counting(100, 60), max_tokens);
    EXPECT_EQ(listener->tokens.size(), 4u);
    EXPECT_EQ(listener->result.reason, FinishReason::kLength);
    EXPECT_OK(listener->result.status);
  }
}

TEST_F(EngineFaultTest, RefusesWhatCannotRun) {
  const auto listener = std::make_shared<RecordingListener>();
  const auto code = StatusCode::kInvalidArgument;
  EXPECT_ERROR(engine_->submit(request({}, 1, listener)), code, "no tokens");
  EXPECT_ERROR(
      engine_->submit(request(counting(0, 512), 1, listener)), code,
      "512 tokens, the context holds 512; shorten it or raise --ctx");
  EXPECT_ERROR(engine_->submit(request({1}, -2, listener)), code, "max_tokens is -2");
  EXPECT_ERROR(engine_->submit(request({1 << 24}, 1, listener)), code, "");
  EXPECT_FALSE(engine_->step());
  EXPECT_EQ(listener->num_finishes, 0);
}

TEST_F(EngineFaultTest, AnswersThoseThatWaitOneAfterTheOther) {
  build(1, 512, 256);
  const Listener running = submit(counting(0, 3), 3);
  ASSERT_TRUE(engine_->step());
  const Listener second = submit(counting(10, 3), 3);
  const Listener third = submit(counting(20, 3), 3);
  EXPECT_EQ(engine_->stats().num_running, 1);
  EXPECT_EQ(engine_->stats().num_waiting, 2);
  run_until_idle();
  EXPECT_EQ(running->tokens, counting(3, 3));
  EXPECT_EQ(second->tokens, counting(13, 3));
  EXPECT_EQ(third->tokens, counting(23, 3));
}

TEST_F(EngineFaultTest, MovesAPromptBesideOthersInAnyStepSize) {
  for (const int64_t max_rows : {2, 3, 64, 127, 128, 200}) {
    build(2, 2048, max_rows);
    const Listener decoding = submit(counting(0, 2), 700);
    engine_->step();
    const Listener prompt = submit(counting(1000, 300), 2);
    run_until_idle();
    EXPECT_EQ(decoding->tokens, counting(2, 700)) << max_rows;
    EXPECT_EQ(prompt->tokens, counting(1300, 2)) << max_rows;
  }
}

TEST_F(EngineFaultTest, CancelsWhatWaitsAndWhatRuns) {
  build(1, 512, 256);
  const Listener running = submit(counting(0, 3), 100);
  running->cancel_after_tokens = 4;
  const Listener waiting = submit(counting(10, 3), 100);
  engine_->step();
  waiting->cancel = true;
  engine_->step();
  EXPECT_EQ(waiting->result.reason, FinishReason::kCancelled);
  EXPECT_EQ(waiting->num_finishes, 1);
  EXPECT_EQ(running->num_finishes, 0);
  run_until_idle();
  EXPECT_EQ(running->result.reason, FinishReason::kCancelled);
  EXPECT_EQ(running->tokens.size(), 4u);
  EXPECT_EQ(run(counting(0, 10), 1)->result.cached_tokens, 6) << "what it computed is kept";
}

TEST_F(EngineFaultTest, AFailedStepEndsOnlyTheSequencesInIt) {
  build(2, 2048, 2);  // a step of two rows holds no prompt beside two decoding sequences
  stage_->before_step = [](const StepBatch& batch) {
    for (const StepRow& row : batch.rows) {
      if (row.token == 105) return Status(StatusCode::kInternal, "a stage broke");
    }
    return Status();
  };
  const Listener broken = submit(counting(100, 3), 50);
  const Listener waiting_a = submit(counting(200, 3), 5);
  const Listener waiting_b = submit(counting(300, 3), 5);
  run_until_idle();
  EXPECT_EQ(broken->result.reason, FinishReason::kError);
  EXPECT_EQ(broken->num_finishes, 1);
  EXPECT_ERROR(broken->result.status, StatusCode::kInternal, "a stage broke");
  EXPECT_EQ(waiting_b->tokens, counting(303, 5));
  EXPECT_EQ(waiting_b->result.reason, FinishReason::kLength);
  EXPECT_EQ(waiting_a->num_finishes, 1);

  stage_->before_step = nullptr;
  const Listener again = run(counting(100, 3), 5);
  EXPECT_EQ(again->tokens, counting(103, 5));
  EXPECT_EQ(again->result.cached_tokens, 0) << "the failed bank was emptied";
}

TEST_F(EngineFaultTest, EverySequenceHearsOfALostStageAndNothingHangs) {
  stage_->before_step = [](const StepBatch&) { return Status(StatusCode::kInternal, "lost"); };
  stage_->before_operation = [](const std::string&) {
    return Status(StatusCode::kInternal, "lost");
  };
  std::vector<Listener> listeners;
  for (int32_t i = 0; i < 6; ++i) listeners.push_back(submit(counting(i * 10, 4), 5));
  run_until_idle();
  for (const Listener& listener : listeners) {
    EXPECT_EQ(listener->num_finishes, 1);
    EXPECT_EQ(listener->result.reason, FinishReason::kError);
    EXPECT_ERROR(listener->result.status, StatusCode::kInternal, "lost");
  }
  stage_->before_step = nullptr;
  stage_->before_operation = nullptr;
  EXPECT_EQ(run(counting(50, 4), 2)->tokens, counting(54, 2)) << "the stage came back";
}

TEST_F(EngineFaultTest, BadLogitsEndOneSequenceAndAreNotReused) {
  stage_->next = [](std::span<const int32_t> tokens) {
    return tokens.back() == 105 ? -1 : tokens.back() + 1;
  };
  const Listener bad = submit(counting(100, 3), 50);
  const Listener good = submit(counting(200, 3), 10);
  run_until_idle();
  EXPECT_EQ(bad->result.reason, FinishReason::kError);
  EXPECT_ERROR(bad->result.status, StatusCode::kDataLoss, "");
  EXPECT_EQ(bad->tokens, counting(103, 3));
  EXPECT_EQ(good->tokens, counting(203, 10));
  stage_->next = [](std::span<const int32_t> tokens) { return tokens.back() + 1; };
  EXPECT_EQ(run(counting(100, 3), 2)->result.cached_tokens, 0);
}

TEST_F(EngineFaultTest, LogitsOfAnotherShapeAreAnErrorAndNotRead) {
  stage_->logits_rows_offset = -1;
  const Listener listener = run(counting(100, 3), 50);
  EXPECT_ERROR(listener->result.status, StatusCode::kInternal, "asked for");
}

TEST_F(EngineFaultTest, LosingCheckpointsOnlyCostsTime) {
  stage_->before_operation = [](const std::string& operation) {
    return operation == "checkpoint" ? Status(StatusCode::kResourceExhausted, "full") : Status();
  };
  EXPECT_EQ(run(counting(100, 200), 3)->tokens, counting(300, 3));
}

TEST_F(EngineFaultTest, AFollowUpThatDropsTheAnswerGoesBackToTheEndOfThePrompt) {
  run(counting(100, 100), 50);
  Tokens follow_up = counting(100, 99);
  follow_up.push_back(7);
  EXPECT_EQ(run(follow_up, 1)->result.cached_tokens, 99);
}

TEST_F(EngineFaultTest, SleepsForTheShareOfTimeThatPowerLeaves) {
  EngineOptions options;
  for (const int percent : {100, 50, 25, 10}) {
    options.power_percent = percent;
    clock_ = {};
    build(1, 512, 256, options);
    stage_->before_step = [this](const StepBatch&) {
      clock_.advance(std::chrono::milliseconds(10));
      return Status();
    };
    run(counting(100, 3), 4);
    const auto busy = std::chrono::milliseconds(40);
    EXPECT_EQ(clock_.slept, busy * (100 - percent) / percent) << percent;
  }
}

TEST_F(EngineFaultTest, ClampsPower) {
  EngineOptions options;
  options.power_percent = 0;
  build(1, 512, 256, options);
  stage_->before_step = [this](const StepBatch&) {
    clock_.advance(std::chrono::milliseconds(1));
    return Status();
  };
  run(counting(100, 3), 1);
  EXPECT_EQ(clock_.slept, std::chrono::milliseconds(99));
  engine_->set_power_percent(1000);
  run(counting(200, 3), 1);
  EXPECT_EQ(clock_.slept, std::chrono::milliseconds(99));
}

TEST_F(EngineFaultTest, TimesPrefillAndDecode) {
  stage_->before_step = [this](const StepBatch& batch) {
    clock_.advance(std::chrono::milliseconds(batch.rows.size()));
    return Status();
  };
  const Listener listener = run(counting(100, 100), 5);
  EXPECT_DOUBLE_EQ(listener->result.prefill_seconds, 0.100);
  EXPECT_DOUBLE_EQ(listener->result.decode_seconds, 0.004);
}

TEST_F(EngineFaultTest, SavesOnlyAStateThatSharesTokens) {
  test::MemoryStream stream;
  EXPECT_ERROR(engine_->save_state(Tokens{1}, stream), StatusCode::kNotFound, "no idle bank");
  run(counting(100, 10), 2);
  EXPECT_ERROR(engine_->save_state(Tokens{}, stream), StatusCode::kNotFound, "no idle bank");
  EXPECT_ERROR(engine_->save_state(Tokens{1}, stream), StatusCode::kNotFound, "no idle bank");
  EXPECT_TRUE(stream.bytes.empty());
  EXPECT_OK(engine_->save_state(counting(100, 10), stream));
}

TEST_F(EngineFaultTest, LoadsASavedStateForLaterPrompts) {
  run(counting(100, 10), 3);
  test::MemoryStream stream;
  ASSERT_OK(engine_->save_state(counting(100, 10), stream));
  build(1, 512, 256);
  const auto tokens = engine_->load_state(stream);
  ASSERT_OK(tokens);
  EXPECT_EQ(*tokens, counting(100, 12));
  EXPECT_EQ(run(counting(100, 20), 1)->result.cached_tokens, 12);
}

TEST_F(EngineFaultTest, RefusesAStateWhoseTokensAndBankDiffer) {
  run(counting(100, 10), 3);
  test::MemoryStream stream;
  ASSERT_OK(engine_->save_state(counting(100, 10), stream));
  // The fake bank is an i64 count and its tokens; a checksum of all before it is last.
  const size_t bank_bytes = sizeof(int64_t) + 12 * sizeof(int32_t);
  stream.bytes.resize(stream.bytes.size() - sizeof(uint64_t));
  stream.bytes[stream.bytes.size() - bank_bytes] = std::byte{11};
  Checksum checksum;
  checksum.add(stream.bytes);
  const uint64_t value = checksum.value();
  ASSERT_OK(stream.write(bytes_of(value)));
  build(1, 512, 256);
  EXPECT_ERROR(engine_->load_state(stream), StatusCode::kDataLoss, "differ in length");
  EXPECT_EQ(run(counting(100, 20), 1)->result.cached_tokens, 0);
}

TEST_F(EngineFaultTest, RefusesAStateWithAnyBitChanged) {
  run(counting(100, 10), 3);
  test::MemoryStream whole;
  ASSERT_OK(engine_->save_state(counting(100, 10), whole));
  build(1, 512, 256);
  for (size_t i = 0; i < whole.bytes.size(); ++i) {
    test::MemoryStream damaged = whole;
    damaged.bytes[i] ^= std::byte{4};
    EXPECT_FALSE(engine_->load_state(damaged).ok()) << "byte " << i;
  }
  EXPECT_EQ(run(counting(100, 20), 1)->result.cached_tokens, 0);
}

TEST_F(EngineFaultTest, LoadsNothingWhileEveryBankIsBusy) {
  run(counting(100, 10), 3);
  test::MemoryStream stream;
  ASSERT_OK(engine_->save_state(counting(100, 10), stream));
  build(1, 512, 256);
  const Listener running = submit(counting(0, 3), 10);
  engine_->step();
  EXPECT_ERROR(engine_->load_state(stream), StatusCode::kResourceExhausted, "busy");
  EXPECT_ERROR(engine_->save_state(counting(0, 3), stream), StatusCode::kNotFound, "no idle bank");
  run_until_idle();
  EXPECT_EQ(running->tokens, counting(3, 10));
}

}  // namespace
}  // namespace tandem
