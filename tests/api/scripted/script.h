#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace tandem::test {

/// One thing to say: the first line whose `when` is part of the newest user turn is said. A turn is
/// what stands behind the last user marker, tool results included.
struct ScriptLine {
  std::string when = {};       // empty: always
  std::string reasoning = {};  // said first, where the prompt asks for it
  /// Text with the model's own markers. Absent: the turn ends within the reasoning.
  std::optional<std::string> say = {};
  std::string say_bytes = {};  // said after that, a token a byte: any bytes, UTF-8 or not
  bool endless = false;        // the answer is said again and again, without an end
  std::chrono::microseconds token_delay{0};  // that the step before each token takes
  int64_t fail_at = -1;                      // the step after this many tokens fails
};

/// Answers of a model that only plays a part. Immutable.
/// Threads: any.
class Script {
 public:
  /// Spellings of special tokens.
  struct Markers {
    std::string user = "<｜User｜>";
    std::string assistant = "<｜Assistant｜>";
    std::string think = "<think>";
    std::string end_think = "</think>";
    std::string end = "<｜end▁of▁sentence｜>";
  };

  /// Errors: kInvalidArgument if a marker is no special token of the vocabulary, a line is not
  /// UTF-8, or a byte of say_bytes has no token of its own.
  static Result<Script> create(
      std::vector<ScriptLine> lines, std::shared_ptr<const Tokenizer> tokenizer);
  /// From a JSON array of {"when", "reasoning", "say", "repeat"}, each of them optional; `repeat`
  /// is how often `say` is said.
  static Result<Script> from_json(
      std::string_view json, std::shared_ptr<const Tokenizer> tokenizer);

  /// The answer that a sequence of tokens is in.
  struct Part {
    const ScriptLine* line = nullptr;              // of the script; null: there is nothing to say
    const std::vector<int32_t>* answer = nullptr;  // of the script; null with `line`
    size_t begin = 0;                              // of the answer, in the sequence
  };
  /// Cost: linear in the tokens since the last user marker.
  Part find(std::span<const int32_t> tokens) const;
  /// What follows the first `num_tokens` tokens: the next token of the answer, or the turn's end.
  int32_t next(const Part& part, size_t num_tokens) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  struct Line {
    ScriptLine text;
    std::vector<int32_t> thinking;  // the whole answer where the prompt asks for reasoning
    std::vector<int32_t> plain;     // and where it does not
  };

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<Line> lines_;
  int32_t user_ = 0;
  int32_t assistant_ = 0;
  int32_t think_ = 0;
  int32_t end_ = 0;
};

}  // namespace tandem::test
