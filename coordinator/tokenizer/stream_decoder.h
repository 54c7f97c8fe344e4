#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace tandem {

/// Turns sampled ids into well-formed UTF-8 as they arrive: an incomplete character is held back,
/// bytes that cannot become one are replaced by U+FFFD. All output joined is the repaired form of
/// Tokenizer::decode, however the ids were spread over calls.
/// Threads: one owner.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special = false)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  /// Appends to `out` the characters that `id` completes; none for an id that does not exist.
  void push(int32_t id, std::string& out) {
    if (!(skip_special_ && tokenizer_->is_special(id))) {
      repair_.push(tokenizer_->token_bytes(id), out);
    }
  }
  std::string push(int32_t id) {
    std::string out;
    push(id, out);
    return out;
  }
  /// What the end of the stream leaves: U+FFFD or nothing. Ready for another stream.
  std::string finish() {
    std::string out;
    repair_.finish(out);
    return out;
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  Utf8Repair repair_;
  bool skip_special_;
};

}  // namespace tandem
