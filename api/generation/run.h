#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/generation/answer.h"
#include "api/generation/answer_builder.h"
#include "api/generation/generator.h"
#include "api/generation/mailbox.h"
#include "api/metrics/server_metrics.h"
#include "coordinator/engine/service.h"

namespace tandem::api {

/// One request on its way through the engine: all its choices, and a second attempt where a tool
/// call came out malformed.
///
/// The second attempt is made once, for a request with one choice, and only while the client has
/// seen no part of a call: the failed text stays in the prompt, with a note of what was wrong.
/// Threads: one owner. Ending it before it is done cancels the generations.
class Run {
 public:
  struct Parts {
    Generator& generator;
    EngineService& engine;
    ServerMetrics& metrics;
    bool keeps_trace = false;  // sampled_text() and event_log() are filled
  };
  /// Submits the request, which outlives the run. Errors: 429 and 503.
  static ApiResult<std::unique_ptr<Run>> start(
      const Parts& parts, const ChatRequest& request, const Prepared& prepared, ResponseHead head,
      std::string tool_id_prefix);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  enum class State { kRunning, kDone, kFailed };

  /// Waits up to `timeout` for something new and puts it into `deltas`. After kDone or kFailed
  /// nothing follows.
  State wait(std::vector<Delta>& deltas, std::chrono::milliseconds timeout);

  State state() const { return state_; }
  /// Its head is there from the start, the rest with kDone.
  const Completion& completion() const { return completion_; }
  const ApiError& error() const { return error_; }  // of kFailed
  /// What the engine is doing with it.
  Phase phase() const { return phase_; }
  /// The first choice's output word for word, and what the parser made of it, one event a line.
  const std::string& sampled_text() const { return sampled_text_; }
  const std::string& event_log() const { return event_log_; }

 private:
  struct ChoiceState {
    AnswerBuilder builder;
    std::shared_ptr<MailListener> listener;
    bool is_done = false;
  };

  Run(const Parts& parts, const ChatRequest& request, ResponseHead head, std::string prefix);
  Status submit(const Prepared& prepared, bool is_retry);
  void take(const Mail& mail, std::vector<Delta>& deltas);
  void finish_choice(ChoiceState& choice, const GenerationResult& result, std::vector<Delta>& out);
  bool can_retry(const ChoiceState& choice) const;
  /// True: another attempt is on its way, or the run has failed; `choice` is gone.
  bool retry(ChoiceState& choice);
  void settle_malformed(ChoiceState& choice, const GenerationResult& result);
  void note(const Mail& mail);
  void add_usage(const GenerationResult& result, const AnswerBuilder& builder);
  void fail(ApiError error);
  void complete();

  Parts parts_;
  const ChatRequest& request_;
  std::string tool_id_prefix_;
  std::shared_ptr<Mailbox> mailbox_;
  std::vector<ChoiceState> choices_;
  std::vector<Mail> mails_;
  Completion completion_;
  ApiError error_;
  State state_ = State::kRunning;
  Phase phase_ = Phase::kQueued;
  bool has_retried_ = false;
  int64_t tokens_left_ = 0;
  std::string first_content_;  // what the first attempt said before its malformed call
  std::string sampled_text_;
  std::string event_log_;
  std::chrono::steady_clock::time_point started_;
  std::optional<std::chrono::steady_clock::time_point> first_token_;
  double prefill_seconds_ = 0;
  double decode_seconds_ = 0;
};

}  // namespace tandem::api
