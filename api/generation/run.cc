#include "api/generation/run.h"

#include "api/generation/ids.h"
#include "api/json/json.h"

namespace tandem::api {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

const char* event_name(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kReasoning: return "reasoning";
    case Event::Kind::kContent: return "content";
    case Event::Kind::kToolBegin: return "tool_begin";
    case Event::Kind::kToolArguments: return "tool_arguments";
    case Event::Kind::kToolEnd: return "tool_end";
    case Event::Kind::kToolBlockEnd: return "tool_block_end";
    case Event::Kind::kParseError: return "parse_error";
  }
  TANDEM_UNREACHABLE();
}

std::string correction(const std::string& problem) {
  return str_cat(
      "Tool call error: ", problem,
      ". No tool was called. Write the call again, exactly as the Tools section shows it.");
}

}  // namespace

Run::Run(const Parts& parts, const ChatRequest& request, ResponseHead head, std::string prefix)
    : parts_(parts),
      request_(request),
      tool_id_prefix_(std::move(prefix)),
      started_(std::chrono::steady_clock::now()) {
  completion_.head = std::move(head);
}

ApiResult<std::unique_ptr<Run>> Run::start(
    const Parts& parts, const ChatRequest& request, const Prepared& prepared, ResponseHead head,
    std::string tool_id_prefix) {
  std::unique_ptr<Run> run(new Run(parts, request, std::move(head), std::move(tool_id_prefix)));
  ServerMetrics::add(parts.metrics.thinks, prepared.effort);
  if (request.return_token_ids) run->completion_.prompt_token_ids = prepared.generation.prompt;
  run->tokens_left_ = prepared.generation.max_tokens;
  const Status status = run->submit(prepared, /*is_retry=*/false);
  if (!status.ok()) {
    if (status.code() == StatusCode::kResourceExhausted) ++parts.metrics.shed_queue;
    return api_error(status);
  }
  return run;
}

Run::~Run() {
  if (mailbox_ != nullptr) mailbox_->cancel();
}

Status Run::submit(const Prepared& prepared, bool is_retry) {
  mailbox_ = std::make_shared<Mailbox>();
  choices_.clear();
  const uint64_t seed = request_.sampling.seed.value_or(0);
  for (int i = 0; i < static_cast<int>(request_.num_choices); ++i) {
    AnswerBuilder::Options options;
    options.choice_idx = i;
    options.tool_id_prefix = tool_id_prefix_;
    options.keeps_tokens = request_.return_token_ids || request_.sampling.logprobs;
    options.single_call = !request_.parallel_tool_calls;
    options.starts_in_reasoning = prepared.effort != Effort::kNone;
    options.hides_reasoning = is_retry && request_.stream;
    auto listener = std::make_shared<MailListener>(mailbox_, i);
    choices_.push_back({AnswerBuilder(options, parts_.generator.tokenizer()), listener});

    GenerationRequest generation = prepared.generation;
    generation.max_tokens = tokens_left_;
    generation.listener = listener;
    // 0 means a new seed each time. Choices of one request differ, but each is a function of the
    // seed.
    generation.sampling.seed = seed == 0 ? random_seed() : seed + static_cast<uint64_t>(i);
    if (i > 0 && generation.constraint != nullptr) {
      // A constraint has state: each choice needs its own.
      auto again = parts_.generator.prepare(request_);
      if (!again.ok()) return invalid_argument(again.error().message);
      generation.constraint = again->generation.constraint;
    }
    Status status = parts_.engine.submit(std::move(generation));
    if (!status.ok()) {
      mailbox_->cancel();  // the choices before this one
      return status;
    }
  }
  return {};
}

Run::State Run::wait(std::vector<Delta>& deltas, std::chrono::milliseconds timeout) {
  deltas.clear();
  if (state_ != State::kRunning) return state_;
  mailbox_->wait(mails_, timeout);
  const std::vector<Mail> mails = std::move(mails_);
  mails_.clear();
  for (const Mail& mail : mails) {
    if (state_ == State::kRunning) take(mail, deltas);
  }
  return state_;
}

void Run::take(const Mail& mail, std::vector<Delta>& deltas) {
  ChoiceState& choice = choices_[static_cast<size_t>(mail.choice_idx)];
  if (parts_.keeps_trace && mail.choice_idx == 0) note(mail);
  switch (mail.kind) {
    case Mail::Kind::kPrefill: {
      if (phase_ == Phase::kQueued) phase_ = Phase::kPrefill;
      if (!request_.include_progress || mail.choice_idx != 0) return;
      Delta delta;
      delta.kind = Delta::Kind::kProgress;
      delta.prompt_done = mail.prompt_done;
      delta.prompt_total = mail.prompt_total;
      delta.prompt_cached = mail.prompt_cached;
      delta.prompt_seconds = seconds_since(started_);
      deltas.push_back(std::move(delta));
      return;
    }
    case Mail::Kind::kToken:
      phase_ = Phase::kDecode;
      if (!first_token_.has_value()) first_token_ = std::chrono::steady_clock::now();
      choice.builder.take(mail, deltas);
      if (choice.builder.wants_end()) choice.listener->end();
      return;
    case Mail::Kind::kFinish:
      choice.builder.take(mail, deltas);
      finish_choice(choice, mail.result, deltas);
      return;
  }
}

void Run::note(const Mail& mail) {
  if (mail.kind == Mail::Kind::kToken) {
    sampled_text_ += parts_.generator.tokenizer().token_bytes(mail.choice.token);
  }
  for (const Event& event : mail.events) {
    event_log_ += str_cat(event_name(event.kind), " ", event.tool_idx, " ", event.data.size(), " ");
    event_log_ += json_string(event.data) + "\n";
  }
}

bool Run::can_retry(const ChoiceState& choice) const {
  return !has_retried_ && choices_.size() == 1 && !mailbox_->cancelled() &&
         !(request_.stream && choice.builder.has_shown_call());
}

bool Run::retry(ChoiceState& choice) {
  AnswerBuilder& builder = choice.builder;
  ChatRequest again = request_;
  Message said;
  said.role = Role::kAssistant;
  said.content = builder.answer().content + builder.malformed_text();
  if (!builder.answer().reasoning.empty()) said.reasoning = builder.answer().reasoning;
  again.messages.push_back(std::move(said));
  Message note;
  note.role = Role::kUser;
  note.content = correction(builder.parse_error());
  again.messages.push_back(std::move(note));
  auto prepared = parts_.generator.prepare(again);
  if (!prepared.ok() || tokens_left_ <= 0) return false;
  has_retried_ = true;
  first_content_ = builder.answer().content;
  const Status status = submit(*prepared, /*is_retry=*/true);  // `choice` is gone from here on
  if (!status.ok()) fail(api_error(status));
  return true;
}

void Run::add_usage(const GenerationResult& result, const AnswerBuilder& builder) {
  Usage& usage = completion_.usage;
  const bool is_first = usage.prompt_tokens == 0;
  if (is_first) {
    usage.prompt_tokens = result.prompt_tokens;
    usage.cached_tokens = result.cached_tokens;
    prefill_seconds_ = result.prefill_seconds;
  }
  usage.completion_tokens += result.generated_tokens;
  usage.reasoning_tokens += builder.reasoning_tokens();
  decode_seconds_ += result.decode_seconds;
  tokens_left_ -= result.generated_tokens;
}

void Run::settle_malformed(ChoiceState& choice, const GenerationResult& result) {
  Answer& answer = choice.builder.answer();
  const bool is_truncated = result.reason == FinishReason::kLength;
  ServerMetrics::add(
      parts_.metrics.tool_parses, is_truncated ? ParseResult::kTruncated : ParseResult::kFailed);
  if (is_truncated) {
    if (request_.stream) return;  // what was shown of the call stays; the budget cut it
    answer.calls.clear();
    answer.content += choice.builder.malformed_text();
    return;
  }
  ApiError error;
  error.http_status = 500;
  error.message = str_cat("the model wrote a malformed tool call: ", choice.builder.parse_error());
  error.code = "tool_call_malformed";
  fail(std::move(error));
}

void Run::finish_choice(
    ChoiceState& choice, const GenerationResult& result, std::vector<Delta>& deltas) {
  add_usage(result, choice.builder);
  if (result.reason == FinishReason::kError) return fail(api_error(result.status));
  if (result.reason == FinishReason::kCancelled && !choice.builder.wants_end()) {
    if (mailbox_->overflowed()) ++parts_.metrics.shed_slow_reader;
    return fail(api_error(Status(StatusCode::kCancelled, "the request was cancelled")));
  }
  if (!choice.builder.parse_error().empty()) {
    const bool is_truncated = result.reason == FinishReason::kLength;
    if (!is_truncated && can_retry(choice) && retry(choice)) return;
    settle_malformed(choice, result);
    if (state_ != State::kRunning) return;
  } else if (!choice.builder.answer().calls.empty()) {
    ServerMetrics::add(
        parts_.metrics.tool_parses, has_retried_ ? ParseResult::kRetried : ParseResult::kOk);
    parts_.generator.tool_memory().remember(
        choice.builder.answer().calls, choice.builder.tool_block());
  }
  if (has_retried_) choice.builder.answer().content.insert(0, first_content_);
  choice.is_done = true;
  Delta delta;
  delta.kind = Delta::Kind::kFinish;
  delta.choice_idx = static_cast<int>(&choice - choices_.data());
  delta.finish = choice.builder.answer().finish;
  completion_.choices.resize(choices_.size());
  completion_.choices[static_cast<size_t>(delta.choice_idx)] = std::move(choice.builder.answer());
  deltas.push_back(std::move(delta));
  for (const ChoiceState& other : choices_) {
    if (!other.is_done) return;
  }
  complete();
}

void Run::complete() {
  Timings& timings = completion_.timings;
  const Usage& usage = completion_.usage;
  if (first_token_.has_value()) {
    timings.ttft_ms = std::chrono::duration<double, std::milli>(*first_token_ - started_).count();
  }
  timings.prefill_tokens = usage.prompt_tokens - usage.cached_tokens;
  timings.prefill_cached_tokens = usage.cached_tokens;
  if (timings.prefill_tokens > 0 && prefill_seconds_ > 0) {
    timings.prefill_tok_s = static_cast<double>(timings.prefill_tokens) / prefill_seconds_;
  }
  const auto num_steps = usage.completion_tokens - static_cast<int64_t>(choices_.size());
  if (num_steps > 0 && decode_seconds_ > 0) {
    timings.decode_tok_s = static_cast<double>(num_steps) / decode_seconds_;
  }
  state_ = State::kDone;
}

void Run::fail(ApiError error) {
  error_ = std::move(error);
  state_ = State::kFailed;
  mailbox_->cancel();
}

}  // namespace tandem::api
