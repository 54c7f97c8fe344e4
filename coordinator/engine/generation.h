#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "coordinator/sampling/sampler.h"
#include "coordinator/sampling/stop_matcher.h"
#include "coordinator/sampling/token_constraint.h"
#include "coordinator/tokenizer/stream_decoder.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "model/spec/prompt.h"

namespace tandem {

enum class FinishReason {
  kStop,       // a stop token or stop string
  kLength,     // max_tokens or the context
  kToolCalls,  // a tool block closed
  kCancelled,  // the listener asked for it
  kError,      // see GenerationResult::status
};

/// "stop", "length", "tool_calls", "cancelled", "error".
const char* finish_reason_name(FinishReason reason);

/// One sampled token and what it added. Borrowed by the call.
struct TokenStep {
  const Choice* choice = nullptr;
  std::string_view bytes;         // of the token
  std::span<const Event> events;  // new text and tool calls; may be empty
};

struct GenerationResult {
  FinishReason reason = FinishReason::kStop;
  Status status;  // of kError
  std::optional<std::string> stop_string;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;     // of the prompt, not computed again
  int64_t generated_tokens = 0;  // with the stop token
  double prefill_seconds = 0;    // first prompt row to first logits
  double decode_seconds = 0;     // first to last token
};

/// Follows one generation. Calls come from the engine's owner thread, in order, and return quickly.
/// A listener does not call the engine.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  /// After each step of the prompt. `cached` were reused.
  virtual void on_prefill(int64_t /*done*/, int64_t /*total*/, int64_t /*cached*/) {}
  virtual void on_token(const TokenStep& step) = 0;
  /// The last call. `events` is what the parser still held.
  virtual void on_finish(const GenerationResult& result, std::span<const Event> events) = 0;
  /// Asked before each step; true ends the generation with kCancelled.
  virtual bool cancelled() const { return false; }
};

/// What to generate.
struct GenerationRequest {
  std::vector<int32_t> prompt;  // at least one token
  SamplingParams sampling;
  uint64_t fallback_seed = 1;           // if sampling.seed is empty
  int64_t max_tokens = -1;              // generated; -1: up to the context
  std::vector<std::string> stop;        // matched in visible text
  std::optional<ParserOptions> parser;  // empty: all text is content
  bool greedy_structure = true;         // tool syntax is sampled at temperature 0
  bool ignore_stop_tokens = false;
  std::shared_ptr<TokenConstraint> constraint;
  std::shared_ptr<GenerationListener> listener;  // not null
};

/// From logits to events, for one sequence: sampler, parser, stop strings.
/// Threads: one owner.
class Generation {
 public:
  /// `protocol` outlives it. Errors: kInvalidArgument names the bad parameter.
  static Result<Generation> create(
      const GenerationRequest& request, const std::shared_ptr<const Tokenizer>& tokenizer,
      const PromptProtocol& protocol);

  Generation(Generation&&) = default;
  Generation& operator=(Generation&&) = default;

  struct Outcome {
    Choice choice;
    std::string_view bytes;
    bool is_stop_token = false;
    std::optional<FinishReason> finish;  // set: the generation is over
  };

  /// Draws the next token and appends what it means to events(). Errors: as Sampler::choose.
  Result<Outcome> advance(std::span<const float> logits);
  /// Flushes the parser and the stop matcher into events().
  void finish();

  /// What the last call added. Cleared by the next.
  std::span<const Event> events() const { return events_; }
  std::optional<std::string> stop_string() const;

 private:
  Generation(Sampler sampler, StopMatcher stop, StreamDecoder decoder)
      : sampler_(std::move(sampler)), stop_(std::move(stop)), decoder_(std::move(decoder)) {}
  void add_text(int32_t token, std::string_view bytes);
  void match_stops();
  /// Shows what the stop matcher holds back, as content.
  void flush_stops();

  std::shared_ptr<const Tokenizer> tokenizer_;
  Sampler sampler_;
  StopMatcher stop_;
  StreamDecoder decoder_;
  std::unique_ptr<StreamParser> parser_;
  std::shared_ptr<TokenConstraint> constraint_;
  std::vector<int32_t> stop_ids_;
  std::vector<std::string> stop_strings_;
  std::vector<Event> events_;
  std::vector<Event> parsed_;
  bool greedy_structure_ = true;
};

}  // namespace tandem
