#include "coordinator/engine/generation.h"

#include <algorithm>

namespace tandem {

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kToolCalls: return "tool_calls";
    case FinishReason::kCancelled: return "cancelled";
    case FinishReason::kError: return "error";
  }
  TANDEM_UNREACHABLE();
}

Result<Generation> Generation::create(
    const GenerationRequest& request, const std::shared_ptr<const Tokenizer>& tokenizer,
    const PromptProtocol& protocol) {
  TANDEM_TRY_ASSIGN(
      Sampler sampler, Sampler::create(request.sampling, tokenizer->size(), request.fallback_seed));
  TANDEM_TRY(sampler.add_prompt(request.prompt));
  TANDEM_TRY_ASSIGN(StopMatcher stop, StopMatcher::create(request.stop));
  Generation made(std::move(sampler), std::move(stop), StreamDecoder(tokenizer));
  made.tokenizer_ = tokenizer;
  made.constraint_ = request.constraint;
  made.stop_strings_ = request.stop;
  made.greedy_structure_ = request.greedy_structure;
  if (request.parser.has_value()) made.parser_ = protocol.parser(*request.parser);
  if (!request.ignore_stop_tokens) {
    for (const std::string& spelling : protocol.stop_tokens()) {
      if (const auto id = tokenizer->special_id(spelling)) made.stop_ids_.push_back(*id);
    }
  }
  return made;
}

Result<Generation::Outcome> Generation::advance(std::span<const float> logits) {
  events_.clear();
  const bool greedy = greedy_structure_ && parser_ != nullptr && parser_->in_structure();
  Outcome out;
  TANDEM_TRY_ASSIGN(out.choice, sampler_.choose(logits, greedy, constraint_.get()));
  const int32_t token = out.choice.token;
  TANDEM_TRY(sampler_.accept(token));
  out.bytes = tokenizer_->token_bytes(token);
  if (std::find(stop_ids_.begin(), stop_ids_.end(), token) != stop_ids_.end()) {
    out.is_stop_token = true;
    out.finish = FinishReason::kStop;
    return out;
  }
  if (constraint_ != nullptr) constraint_->accept(token);
  add_text(token, out.bytes);
  match_stops();
  if (stop_.hit().has_value()) {
    out.finish = FinishReason::kStop;
  } else if (parser_ != nullptr && parser_->turn_complete()) {
    out.finish = FinishReason::kToolCalls;
  }
  return out;
}

void Generation::add_text(int32_t token, std::string_view bytes) {
  if (parser_ != nullptr) {
    if (tokenizer_->is_special(token)) {
      parser_->push_control(bytes, events_);
    } else {
      parser_->push(bytes, events_);
    }
    return;
  }
  std::string text = decoder_.push(token);
  if (!text.empty()) events_.push_back({Event::Kind::kContent, std::move(text), 0});
}

void Generation::match_stops() {
  if (stop_strings_.empty()) return;
  parsed_.swap(events_);
  events_.clear();
  for (Event& event : parsed_) {
    if (stop_.hit().has_value()) return;  // nothing after the cut is shown
    if (event.kind == Event::Kind::kContent) {
      event.data = std::string(stop_.push(event.data));
    } else if (event.kind == Event::Kind::kToolBegin) {
      flush_stops();  // a stop string does not reach over a call
    }
    if (event.kind != Event::Kind::kContent || !event.data.empty()) {
      events_.push_back(std::move(event));
    }
  }
}

void Generation::finish() {
  events_.clear();
  if (stop_.hit().has_value()) return;
  if (parser_ != nullptr) {
    parser_->finish(events_);
  } else {
    std::string text = decoder_.finish();
    if (!text.empty()) events_.push_back({Event::Kind::kContent, std::move(text), 0});
  }
  match_stops();
  if (!stop_strings_.empty() && !stop_.hit().has_value()) flush_stops();
}

void Generation::flush_stops() {
  std::string rest(stop_.finish());
  if (!rest.empty()) events_.push_back({Event::Kind::kContent, std::move(rest), 0});
  if (stop_.hit().has_value()) return;
  if (auto fresh = StopMatcher::create(stop_strings_); fresh.ok()) stop_ = std::move(*fresh);
}

std::optional<std::string> Generation::stop_string() const {
  if (!stop_.hit().has_value()) return std::nullopt;
  return stop_strings_[*stop_.hit()];
}

}  // namespace tandem
