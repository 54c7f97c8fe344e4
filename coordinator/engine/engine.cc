#include "coordinator/engine/engine.h"

#include <algorithm>

#include "base/checksum.h"
#include "base/limits.h"
#include "coordinator/engine/state_file.h"

namespace tandem {

Engine::Engine(
    Pipeline& pipeline, std::shared_ptr<const Tokenizer> tokenizer, const PromptProtocol& protocol,
    Clock& clock, const EngineOptions& options)
    : pipeline_(pipeline),
      tokenizer_(std::move(tokenizer)),
      protocol_(protocol),
      clock_(clock),
      options_(options),
      directory_(pipeline) {
  set_power_percent(options.power_percent);
}

void Engine::set_power_percent(int percent) {
  options_.power_percent = std::clamp(percent, 1, 100);
}

Status Engine::submit(GenerationRequest request) {
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  TANDEM_REQUIRE(prompt_tokens > 0, "the prompt has no tokens");
  TANDEM_REQUIRE(
      prompt_tokens < pipeline_.context_tokens(),
      str_cat(
          "the prompt has ", prompt_tokens, " tokens, the context holds ",
          pipeline_.context_tokens(), "; shorten it or raise --ctx"));
  TANDEM_REQUIRE(
      request.max_tokens >= -1, str_cat("max_tokens is ", request.max_tokens, ", must be >= 0"));
  TANDEM_TRY_ASSIGN(Generation generation, Generation::create(request, tokenizer_, protocol_));
  auto sequence = std::make_unique<Sequence>(
      Sequence{std::move(request), std::move(generation), {}, -1, 0, {}, {}, {}});
  sequence->tokens = sequence->request.prompt;
  sequence->result.prompt_tokens = prompt_tokens;
  const int64_t room = pipeline_.context_tokens() - prompt_tokens;
  int64_t& max_tokens = sequence->request.max_tokens;
  max_tokens = max_tokens < 0 ? room : std::min(max_tokens, room);
  sequence->tokens.reserve(sequence->tokens.size() + static_cast<size_t>(max_tokens));
  waiting_.push_back(std::move(sequence));
  return {};
}

bool Engine::step() {
  drop_cancelled();
  admit_waiting();
  if (running_.empty()) return false;
  views_.clear();
  for (const auto& sequence : running_) {
    views_.push_back({static_cast<int64_t>(sequence->tokens.size()), sequence->num_done});
  }
  const std::vector<PlannedRows> plan =
      plan_step(views_, {pipeline_.max_rows(), options_.prefill_rows_beside_decode});
  const Clock::Time started = clock_.now();
  const Result<ConstRows> logits = run_rows(plan);
  if (logits.ok()) {
    after_step(plan, *logits);
  } else {
    fail_all(plan, logits.status());
  }
  std::erase_if(running_, [](const auto& sequence) { return sequence == nullptr; });
  throttle(started);
  return true;
}

void Engine::run_until_idle() {
  while (step()) {
  }
}

void Engine::end_waiting(const Status& status) {
  for (const auto& sequence : waiting_) finish(*sequence, FinishReason::kError, status);
  waiting_.clear();
}

void Engine::end_all(const Status& status) {
  end_waiting(status);
  for (const auto& sequence : running_) finish(*sequence, FinishReason::kError, status);
  running_.clear();
}

void Engine::drop_cancelled() {
  const auto drop = [&](auto& sequences) {
    for (auto& sequence : sequences) {
      if (!sequence->request.listener->cancelled()) continue;
      finish(*sequence, FinishReason::kCancelled);
      sequence = nullptr;
    }
    std::erase_if(sequences, [](const auto& sequence) { return sequence == nullptr; });
  };
  drop(waiting_);
  drop(running_);
}

void Engine::admit_waiting() {
  while (!waiting_.empty() && directory_.has_idle()) {
    std::unique_ptr<Sequence> sequence = std::move(waiting_.front());
    waiting_.pop_front();
    const auto lease = directory_.acquire(sequence->request.prompt);
    if (!lease.ok()) {
      finish(*sequence, FinishReason::kError, lease.status());
      continue;
    }
    sequence->bank = lease->bank;
    sequence->num_done = lease->num_reused;
    sequence->result.cached_tokens = lease->num_reused;
    sequence->started = clock_.now();
    stats_.cached_tokens += lease->num_reused;
    running_.push_back(std::move(sequence));
  }
}

Result<ConstRows> Engine::run_rows(std::span<const PlannedRows> plan) {
  batch_.rows.clear();
  for (const PlannedRows& part : plan) {
    const Sequence& sequence = *running_[part.sequence_idx];
    const int64_t end = sequence.num_done + part.num_rows;
    const auto num_prompt = static_cast<int64_t>(sequence.request.prompt.size());
    for (int64_t pos = sequence.num_done; pos < end; ++pos) {
      const bool is_last = pos + 1 == static_cast<int64_t>(sequence.tokens.size());
      batch_.rows.push_back(
          {static_cast<int32_t>(sequence.bank), static_cast<int32_t>(pos), sequence.tokens[pos],
           is_last && sequence.request.max_tokens > 0,
           pos < num_prompt ? Phase::kPrefill : Phase::kDecode});
    }
  }
  ++stats_.steps;
  return pipeline_.run(batch_);
}

void Engine::after_step(std::span<const PlannedRows> plan, ConstRows logits) {
  int64_t logits_row = 0;
  for (const PlannedRows& part : plan) {
    std::unique_ptr<Sequence>& slot = running_[part.sequence_idx];
    Sequence& sequence = *slot;
    const std::span<const int32_t> tokens(sequence.tokens);
    directory_.append(sequence.bank, tokens.subspan(sequence.num_done, part.num_rows));
    sequence.num_done += part.num_rows;

    const int64_t prompt_tokens = sequence.result.prompt_tokens;
    const bool in_prompt = sequence.result.generated_tokens == 0;
    if (in_prompt) {
      stats_.prompt_tokens += part.num_rows;
      sequence.request.listener->on_prefill(
          sequence.num_done, prompt_tokens, sequence.result.cached_tokens);
      // A later prompt often differs from just before the end on, where an answer began: the rings
      // reach back to there from a checkpoint at the end, but not from behind the answer.
      if (sequence.num_done % kChunkGridTokens == 0 || sequence.num_done == prompt_tokens) {
        (void)directory_.keep_checkpoint(sequence.bank);  // only costs a later replay if it fails
      }
    }
    if (sequence.num_done < static_cast<int64_t>(sequence.tokens.size())) continue;
    bool done = false;
    if (sequence.request.max_tokens == 0) {
      finish(sequence, FinishReason::kLength);
      done = true;
    } else {
      done = accept_logits(sequence, {logits.row(logits_row++), static_cast<size_t>(logits.cols)});
    }
    if (done) slot = nullptr;
  }
}

bool Engine::accept_logits(Sequence& sequence, std::span<const float> logits) {
  GenerationResult& result = sequence.result;
  Result<Generation::Outcome> outcome = sequence.generation.advance(logits);
  if (!outcome.ok()) {
    // Logits that are no numbers come from a state that is not worth keeping.
    directory_.discard(sequence.bank);
    sequence.bank = -1;
    finish(sequence, FinishReason::kError, outcome.status());
    return true;
  }
  const Clock::Time now = clock_.now();
  if (result.generated_tokens == 0) {
    sequence.first_token = now;
    result.prefill_seconds = seconds_between(sequence.started, now);
  }
  ++result.generated_tokens;
  ++stats_.generated_tokens;
  result.decode_seconds = seconds_between(sequence.first_token, now);
  sequence.tokens.push_back(outcome->choice.token);
  sequence.request.listener->on_token(
      {&outcome->choice, outcome->bytes, sequence.generation.events()});
  if (outcome->finish.has_value()) {
    finish(sequence, *outcome->finish);
    return true;
  }
  if (result.generated_tokens >= sequence.request.max_tokens) {
    finish(sequence, FinishReason::kLength);
    return true;
  }
  return false;
}

void Engine::finish(Sequence& sequence, FinishReason reason, Status status) {
  sequence.generation.finish();
  sequence.result.reason = reason;
  sequence.result.status = std::move(status);
  sequence.result.stop_string = sequence.generation.stop_string();
  if (sequence.bank >= 0) directory_.release(sequence.bank);
  ++stats_.requests_finished;
  sequence.request.listener->on_finish(sequence.result, sequence.generation.events());
}

void Engine::fail_all(std::span<const PlannedRows> plan, const Status& status) {
  for (const PlannedRows& part : plan) {
    std::unique_ptr<Sequence>& sequence = running_[part.sequence_idx];
    directory_.discard(sequence->bank);
    sequence->bank = -1;
    finish(*sequence, FinishReason::kError, status);
    sequence = nullptr;
  }
}

void Engine::throttle(Clock::Time step_started) {
  if (options_.power_percent >= 100) return;
  const auto busy = std::max(Clock::Time::duration{}, clock_.now() - step_started);
  clock_.sleep_for(busy * (100 - options_.power_percent) / options_.power_percent);
}

EngineStats Engine::stats() const {
  EngineStats out = stats_;
  out.num_running = static_cast<int64_t>(running_.size());
  out.num_waiting = static_cast<int64_t>(waiting_.size());
  return out;
}

Status Engine::save_state(std::span<const int32_t> tokens, ByteSink& sink) {
  const int64_t bank = directory_.find(tokens);
  const bool shares_any = bank >= 0 && !tokens.empty() && !directory_.tokens(bank).empty() &&
                          directory_.tokens(bank).front() == tokens.front();
  if (!shares_any) {
    return Status(StatusCode::kNotFound, "no idle bank holds these tokens");
  }
  ChecksumSink checked(sink);
  TANDEM_TRY(write_state_header(checked, options_.fingerprint, directory_.tokens(bank)));
  TANDEM_TRY(pipeline_.save(bank, checked));
  return checked.finish();
}

Result<std::vector<int32_t>> Engine::load_state(ByteSource& source) {
  ChecksumSource checked(source);
  TANDEM_TRY_ASSIGN(
      std::vector<int32_t> tokens,
      read_state_header(
          checked, options_.fingerprint, pipeline_.context_tokens(), pipeline_.vocab_size()));
  TANDEM_TRY_ASSIGN(const BankDirectory::Lease lease, directory_.acquire(tokens));
  directory_.discard(lease.bank);
  TANDEM_TRY(pipeline_.load(lease.bank, checked));
  const Status intact =
      pipeline_.length(lease.bank) == std::ssize(tokens)
          ? checked.verify()
          : Status(StatusCode::kDataLoss, "the saved state and its tokens differ in length");
  if (!intact.ok()) {
    directory_.discard(lease.bank);
    return intact;
  }
  directory_.append(lease.bank, tokens);
  directory_.release(lease.bank);
  return tokens;
}

}  // namespace tandem
