#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/terminal.h"
#include "coordinator/engine/generation.h"

namespace tandem {

/// Collects an answer and, if asked, prints it as it comes: reasoning in grey, calls as one line
/// each.
class AnswerListener final : public GenerationListener {
 public:
  struct Options {
    bool prints = true;          // text to standard output
    bool shows_progress = true;  // of the prompt, on a terminal's standard error
    const InterruptFlag* interrupt = nullptr;
  };

  explicit AnswerListener(const Options& options) : options_(options) {}

  void on_prefill(int64_t done, int64_t total, int64_t cached) override;
  void on_token(const TokenStep& step) override;
  void on_finish(const GenerationResult& result, std::span<const Event> events) override;
  bool cancelled() const override {
    return options_.interrupt != nullptr && options_.interrupt->raised();
  }

  /// The assistant message that the answer makes, as the history keeps it.
  const Message& message() const { return message_; }
  const GenerationResult& result() const { return result_; }
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  void take(std::span<const Event> events);
  void print_reasoning(const std::string& text);
  void end_reasoning();

  Options options_;
  Terminal out_{stdout};
  Terminal err_{stderr};
  Message message_{Role::kAssistant, {}, {}, {}, {}, {}, {}, {}};
  GenerationResult result_;
  std::vector<Choice> choices_;
  bool in_reasoning_ = false;
};

/// "12 prompt tokens (4 cached) at 80.1/s, 30 generated at 61.2/s", and why the answer ended if it
/// did not end by itself.
std::string timing_line(const GenerationResult& result, int64_t context_tokens);

}  // namespace tandem
