#pragma once

#include <string>
#include <vector>

#include "api/generation/answer.h"
#include "api/generation/mailbox.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace tandem::api {

/// From the events of one generation to an answer, and to the deltas of a stream on the way.
/// Threads: one owner.
class AnswerBuilder {
 public:
  struct Options {
    int choice_idx = 0;
    std::string tool_id_prefix;  // "call_"
    bool keeps_tokens = false;
    bool single_call = false;  // the turn ends with the first call
    bool starts_in_reasoning = false;
    bool hides_reasoning = false;  // of a second attempt: the client has content already
  };
  /// `tokenizer` outlives it.
  AnswerBuilder(Options options, const Tokenizer& tokenizer)
      : options_(std::move(options)), tokenizer_(tokenizer) {
    answer_.starts_in_reasoning = options_.starts_in_reasoning;
  }

  /// Appends what the mail adds. After wants_end() the generation is not needed any more.
  void take(const Mail& mail, std::vector<Delta>& out);
  bool wants_end() const { return is_cut_ || !parse_error_.empty(); }

  const Answer& answer() const { return answer_; }
  Answer& answer() { return answer_; }
  /// One line if a tool call could not be read. Its text is then in malformed_text(), and the calls
  /// of the answer are void.
  const std::string& parse_error() const { return parse_error_; }
  const std::string& malformed_text() const { return malformed_; }
  bool has_shown_call() const { return has_shown_call_; }
  /// The exact text of the whole tool block, if one was completed.
  const std::string& tool_block() const { return tool_block_; }
  int64_t reasoning_tokens() const { return reasoning_tokens_; }

 private:
  void take_event(const Event& event, std::vector<Delta>& out);
  void take_token(const Mail& mail);
  void emit(Delta delta, std::vector<Delta>& out);

  Options options_;
  const Tokenizer& tokenizer_;
  Answer answer_;
  std::string parse_error_;
  std::string malformed_;
  std::string tool_block_;
  bool has_shown_call_ = false;
  bool is_cut_ = false;
  int64_t reasoning_tokens_ = 0;
  std::vector<TokenInfo> pending_;  // tokens that no delta carries yet
};

}  // namespace tandem::api
