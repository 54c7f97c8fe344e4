#include "apps/answer.h"

#include <cstdio>

namespace tandem {

void AnswerListener::on_prefill(int64_t done, int64_t total, int64_t) {
  if (options_.shows_progress && done < total) err_.show_progress("reading", done, total);
}

void AnswerListener::on_token(const TokenStep& step) {
  err_.clear_progress();
  choices_.push_back(*step.choice);
  take(step.events);
}

void AnswerListener::on_finish(const GenerationResult& result, std::span<const Event> events) {
  err_.clear_progress();
  result_ = result;
  take(events);
  if (!options_.prints) return;
  end_reasoning();
  out_.write("\n");
  out_.flush();
}

void AnswerListener::take(std::span<const Event> events) {
  for (const Event& event : events) {
    switch (event.kind) {
      case Event::Kind::kReasoning:
        message_.reasoning = message_.reasoning.value_or("") + event.data;
        print_reasoning(event.data);
        break;
      case Event::Kind::kContent:
        message_.content += event.data;
        if (!options_.prints) break;
        end_reasoning();
        out_.write(event.data);
        break;
      case Event::Kind::kToolBegin:
        message_.tool_calls.push_back({str_cat("call_", event.tool_idx), event.data, {}, {}});
        if (!options_.prints) break;
        end_reasoning();
        out_.write_dim(str_cat("\n[calls ", event.data, " "));
        break;
      case Event::Kind::kToolArguments:
        message_.tool_calls.back().arguments += event.data;
        if (options_.prints) out_.write_dim(event.data);
        break;
      case Event::Kind::kToolEnd:
        if (options_.prints) out_.write_dim("]");
        break;
      case Event::Kind::kToolBlockEnd:
        if (!message_.tool_calls.empty()) message_.tool_calls.front().sampled_block = event.data;
        break;
      case Event::Kind::kParseError:
        message_.tool_calls.clear();  // those of a broken block are void
        if (options_.prints) err_.write_dim(str_cat("\n[", event.data, "]\n"));
        break;
    }
  }
  if (options_.prints) out_.flush();
}

void AnswerListener::print_reasoning(const std::string& text) {
  if (!options_.prints) return;
  in_reasoning_ = true;
  out_.write_dim(text);
}

void AnswerListener::end_reasoning() {
  if (!in_reasoning_) return;
  in_reasoning_ = false;
  out_.write("\n\n");
}

namespace {

/// ", and why" for an answer that was cut.
const char* end_note(const GenerationResult& result, int64_t context_tokens) {
  if (result.reason == FinishReason::kCancelled) return ", stopped";
  if (result.reason != FinishReason::kLength) return "";
  return result.prompt_tokens + result.generated_tokens >= context_tokens
             ? ", cut because the context is full (-c)"
             : ", cut at the limit (-n)";
}

}  // namespace

std::string timing_line(const GenerationResult& result, int64_t context_tokens) {
  char text[200];
  const int64_t computed = result.prompt_tokens - result.cached_tokens;
  const double prefill_rate =
      result.prefill_seconds > 0 ? static_cast<double>(computed) / result.prefill_seconds : 0;
  const double decode_rate =
      result.decode_seconds > 0
          ? static_cast<double>(result.generated_tokens - 1) / result.decode_seconds
          : 0;
  std::snprintf(
      text, sizeof(text), "%lld prompt tokens (%lld cached) at %.1f/s, %lld generated at %.1f/s%s",
      static_cast<long long>(result.prompt_tokens), static_cast<long long>(result.cached_tokens),
      prefill_rate, static_cast<long long>(result.generated_tokens), decode_rate,
      end_note(result, context_tokens));
  return text;
}

}  // namespace tandem
