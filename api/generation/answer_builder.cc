#include "api/generation/answer_builder.h"

#include "api/generation/ids.h"

namespace tandem::api {

void AnswerBuilder::take_token(const Mail& mail) {
  if (!options_.keeps_tokens) return;
  TokenInfo info;
  info.id = mail.choice.token;
  info.bytes = tokenizer_.token_bytes(info.id);
  info.is_special = tokenizer_.is_special(info.id);
  info.logprob = mail.choice.logprob;
  for (const TokenLogprob& other : mail.choice.top) {
    info.top.push_back({std::string(tokenizer_.token_bytes(other.token)), other.logprob});
  }
  pending_.push_back(info);
  answer_.tokens.push_back(std::move(info));
}

void AnswerBuilder::take(const Mail& mail, std::vector<Delta>& out) {
  if (mail.kind == Mail::Kind::kToken) {
    take_token(mail);
    const bool was_reasoning = answer_.content.empty() && answer_.calls.empty();
    for (const Event& event : mail.events) take_event(event, out);
    if (options_.starts_in_reasoning && was_reasoning && answer_.content.empty() &&
        answer_.calls.empty()) {
      ++reasoning_tokens_;
    }
    return;
  }
  if (mail.kind != Mail::Kind::kFinish) return;
  for (const Event& event : mail.events) take_event(event, out);
  answer_.finish = is_cut_ ? FinishReason::kToolCalls : mail.result.reason;
  answer_.stop_string = mail.result.stop_string;
  // Calls end a turn, however it came to its end, unless the budget cut it.
  if (!answer_.calls.empty() && parse_error_.empty() && answer_.finish == FinishReason::kStop) {
    answer_.finish = FinishReason::kToolCalls;
  }
}

void AnswerBuilder::emit(Delta delta, std::vector<Delta>& out) {
  delta.choice_idx = options_.choice_idx;
  if (delta.kind == Delta::Kind::kContent) {
    answer_.content_tokens.insert(answer_.content_tokens.end(), pending_.begin(), pending_.end());
  }
  delta.tokens = std::move(pending_);
  pending_.clear();
  out.push_back(std::move(delta));
}

void AnswerBuilder::take_event(const Event& event, std::vector<Delta>& out) {
  if (is_cut_) return;
  Delta delta;
  delta.tool_idx = event.tool_idx;
  switch (event.kind) {
    case Event::Kind::kReasoning:
      answer_.reasoning += event.data;
      if (options_.hides_reasoning) return;
      delta.kind = Delta::Kind::kReasoning;
      delta.text = event.data;
      return emit(std::move(delta), out);
    case Event::Kind::kContent:
      if (!parse_error_.empty()) {
        malformed_ += event.data;
        return;
      }
      answer_.content += event.data;
      delta.kind = Delta::Kind::kContent;
      delta.text = event.data;
      return emit(std::move(delta), out);
    case Event::Kind::kToolBegin:
      answer_.calls.push_back({random_id(options_.tool_id_prefix, 32), event.data, {}});
      has_shown_call_ = true;
      delta.kind = Delta::Kind::kToolBegin;
      delta.text = event.data;
      delta.tool_id = answer_.calls.back().id;
      return emit(std::move(delta), out);
    case Event::Kind::kToolArguments:
      if (answer_.calls.empty()) return;
      answer_.calls.back().arguments += event.data;
      delta.kind = Delta::Kind::kToolArguments;
      delta.text = event.data;
      return emit(std::move(delta), out);
    case Event::Kind::kToolEnd:
      delta.kind = Delta::Kind::kToolEnd;
      emit(std::move(delta), out);
      is_cut_ = options_.single_call;
      return;
    case Event::Kind::kToolBlockEnd: tool_block_ = event.data; return;
    case Event::Kind::kParseError: parse_error_ = event.data; return;
  }
}

}  // namespace tandem::api
