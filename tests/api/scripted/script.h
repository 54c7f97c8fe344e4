#pragma once

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
  std::string when;                // empty: always
  std::string reasoning;           // said first, where the prompt asks for it
  std::optional<std::string> say;  // text with the model's own markers; absent: the turn ends
                                   // within the reasoning
};

/// Answers of a model that only plays a part. Immutable.
/// Threads: any.
class Script {
 public:
  /// `user`, `assistant`, `think`, `end_think` and `end` are spellings of special tokens.
  struct Markers {
    std::string user = "<｜User｜>";
    std::string assistant = "<｜Assistant｜>";
    std::string think = "<think>";
    std::string end_think = "</think>";
    std::string end = "<｜end▁of▁sentence｜>";
  };

  /// Errors: kInvalidArgument if a marker is no special token of the vocabulary or a line is not
  /// UTF-8.
  static Result<Script> create(
      std::vector<ScriptLine> lines, std::shared_ptr<const Tokenizer> tokenizer);
  /// From a JSON array of {"when", "reasoning", "say", "repeat"}, each of them optional; `repeat`
  /// is how often `say` is said.
  static Result<Script> from_json(
      std::string_view json, std::shared_ptr<const Tokenizer> tokenizer);

  /// What follows a sequence of tokens: the next token of the answer, or the end of the turn.
  /// Cost: linear in the tokens since the last user marker.
  int32_t next(std::span<const int32_t> tokens) const;
  int32_t vocab_size() const { return tokenizer_->size(); }

 private:
  struct Line {
    std::string when;
    std::vector<int32_t> thinking;  // the whole answer where the prompt asks for reasoning
    std::vector<int32_t> plain;     // and where it does not
  };

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<Line> lines_;
  int32_t user_ = 0;
  int32_t assistant_ = 0;
  int32_t think_ = 0;
  int32_t end_think_ = 0;
  int32_t end_ = 0;
};

}  // namespace tandem::test
