#pragma once

#include <functional>
#include <string>
#include <vector>

#include "coordinator/engine/generation.h"

namespace tandem::test {

/// Keeps all that a generation reports, and cancels when asked to.
class RecordingListener final : public GenerationListener {
 public:
  void on_prefill(int64_t done, int64_t total, int64_t) override {
    prefill_done.push_back(done);
    prefill_total = total;
  }
  void on_token(const TokenStep& step) override {
    choices.push_back(*step.choice);
    tokens.push_back(step.choice->token);
    add(step.events);
  }
  void on_finish(const GenerationResult& final_result, std::span<const Event> last) override {
    ++num_finishes;
    result = final_result;
    add(last);
  }
  bool cancelled() const override {
    return cancel || (cancel_after_tokens >= 0 && std::ssize(tokens) >= cancel_after_tokens);
  }

  /// All text of one kind, joined.
  std::string text(Event::Kind kind) const {
    std::string out;
    for (const Event& event : events) {
      if (event.kind == kind) out += event.data;
    }
    return out;
  }
  std::string content() const { return text(Event::Kind::kContent); }

  std::vector<int64_t> prefill_done;
  int64_t prefill_total = 0;
  std::vector<Choice> choices;
  std::vector<int32_t> tokens;
  std::vector<Event> events;
  GenerationResult result;
  int num_finishes = 0;
  bool cancel = false;
  int64_t cancel_after_tokens = -1;

 private:
  void add(std::span<const Event> more) { events.insert(events.end(), more.begin(), more.end()); }
};

}  // namespace tandem::test
