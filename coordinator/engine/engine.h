#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/byte_stream.h"
#include "base/clock.h"
#include "base/status.h"
#include "coordinator/engine/bank_directory.h"
#include "coordinator/engine/generation.h"
#include "coordinator/engine/pipeline.h"
#include "coordinator/engine/step_plan.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "model/spec/prompt.h"

namespace tandem {

struct EngineOptions {
  int64_t prefill_rows_beside_decode = 128;
  int power_percent = 100;  // clamped to 1 to 100: share of the time that steps may take
  std::string fingerprint;  // of the model; saved states carry it
};

/// Counters since the start.
struct EngineStats {
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t steps = 0;
  int64_t requests_finished = 0;
  int64_t prompt_tokens = 0;  // computed
  int64_t cached_tokens = 0;  // reused
  int64_t generated_tokens = 0;
};

/// The only authority over order: takes requests, forms steps of rows from all running sequences,
/// samples, and tells each listener. One call of step() is one forward pass.
/// Threads: one owner calls everything; listeners are called from step().
class Engine {
 public:
  /// Everything passed by reference outlives the engine.
  Engine(
      Pipeline& pipeline, std::shared_ptr<const Tokenizer> tokenizer,
      const PromptProtocol& protocol, Clock& clock, const EngineOptions& options);

  /// Queues a request. Its listener hears of everything after that, errors included. How many may
  /// wait is the caller's to bound: see EngineService.
  /// Errors: kInvalidArgument for a bad parameter or a prompt that does not fit the context.
  Status submit(GenerationRequest request);

  /// Runs one forward pass over all sequences that can advance. False: there was nothing to do.
  bool step();
  /// step() until nothing is left.
  void run_until_idle();

  /// Ends every sequence, waiting or running, with kError and `status`. What they computed stays
  /// for reuse.
  void end_all(const Status& status);
  /// Ends the sequences that wait for a bank the same way.
  void end_waiting(const Status& status);

  EngineStats stats() const;
  void describe_banks(std::vector<BankDirectory::BankInfo>& out) const { directory_.describe(out); }
  int64_t context_tokens() const { return pipeline_.context_tokens(); }
  int64_t num_banks() const { return pipeline_.num_banks(); }
  /// Limits: clamped to 1 to 100.
  void set_power_percent(int percent);

  /// Writes the state that shares most with `tokens`, with its token history.
  /// Errors: kNotFound if no idle bank holds any of them; the sink's.
  Status save_state(std::span<const int32_t> tokens, ByteSink& sink);
  /// Reads a saved state into an idle bank, where later prompts find it; returns its tokens.
  /// Errors: kInvalidArgument if it is of another model, kDataLoss, kResourceExhausted.
  Result<std::vector<int32_t>> load_state(ByteSource& source);

 private:
  struct Sequence {
    GenerationRequest request;
    Generation generation;
    std::vector<int32_t> tokens;  // prompt and generated
    int64_t bank = -1;
    int64_t num_done = 0;
    GenerationResult result;
    Clock::Time started{};
    Clock::Time first_token{};
  };

  void admit_waiting();
  void drop_cancelled();
  Result<ConstRows> run_rows(std::span<const PlannedRows> plan);
  void after_step(std::span<const PlannedRows> plan, ConstRows logits);
  /// Handles the logits of a sequence's newest row. True: the sequence is over.
  bool accept_logits(Sequence& sequence, std::span<const float> logits);
  void finish(Sequence& sequence, FinishReason reason, Status status = {});
  void fail_all(std::span<const PlannedRows> plan, const Status& status);
  void throttle(Clock::Time step_started);

  Pipeline& pipeline_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  const PromptProtocol& protocol_;
  Clock& clock_;
  EngineOptions options_;
  BankDirectory directory_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;
  std::vector<SequenceView> views_;
  StepBatch batch_;
  EngineStats stats_;
};

}  // namespace tandem
