#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "model/families/deepseek_v4/dsml_block_parser.h"
#include "model/spec/prompt.h"

namespace tandem::v4 {

/// Reads an answer: reasoning up to the first "</think>", content, and one tool block, which ends
/// the turn; what comes after it is dropped. An answer that opens with "<think>" starts in
/// reasoning whatever the options say. Text in events is valid UTF-8; a block's text is as it was
/// sampled.
///
/// With tools active:
/// - The whitespace before a block, up to kSeparatorBytesMax, belongs to the block.
/// - Closing tags without a block are dropped from the content. Everything else with the DSML
///   marker is a call or ends in kParseError; after that, the rest of the answer is content, and
///   calls already reported from the same block are void.
/// - A block inside reasoning is held. If reasoning closes or goes on after it, it was a quotation
///   and is reasoning. If the answer ends with it, the model forgot to close its reasoning, and the
///   calls count.
/// - A block longer than kToolBlockBytesMax fails.
class OutputParser final : public StreamParser {
 public:
  explicit OutputParser(const ParserOptions& options) : options_(options) {}

  void push(std::string_view bytes, std::vector<Event>& out) override;
  void push_control(std::string_view spelling, std::vector<Event>& out) override;
  void finish(std::vector<Event>& out) override;
  bool in_structure() const override;
  bool turn_complete() const override { return place_ == Place::kComplete; }

 private:
  enum class Place {
    kStart,      // an opening think tag may come first
    kReasoning,  // scanning
    kHeldBlock,  // a block inside reasoning
    kContent,    // scanning
    kBlock,      // a block whose events go out
    kRest,       // after an error: content without scanning
    kComplete,
  };
  enum class Step { kGo, kWait };

  bool is_read_here(std::string_view spelling) const;
  Step step(std::vector<Event>& out);
  Step start(std::vector<Event>& out);
  Step scan(std::vector<Event>& out);
  Step at_candidate(std::vector<Event>& out);
  Step begin_block(BlockOpening opening, size_t num_opener_bytes);
  Step block(std::vector<Event>& out);
  Step held_block(std::vector<Event>& out);

  void finish_held(std::vector<Event>& out);
  void complete(std::vector<Event>& out);
  void report_error(std::string_view message, std::vector<Event>& out);
  /// The block was a quotation: back to scanning, from byte `resume` of the block's text.
  void release(Place place, size_t resume);
  void enter(Place place, std::vector<Event>& out);

  bool in_reasoning() const { return place_ == Place::kReasoning || place_ == Place::kHeldBlock; }
  std::string_view block_text() const;
  /// Reports buffer_[pos_, end) as text of the current place.
  void emit_until(size_t end, std::vector<Event>& out);
  void flush_text(std::vector<Event>& out);

  ParserOptions options_;
  Place place_ = Place::kStart;
  std::string buffer_;        // what is not reported yet, or the block from its separator on
  size_t pos_ = 0;            // reported up to here; 0 between calls
  size_t scanned_ = 0;        // no tag starts before here; the bytes from pos_ are whitespace
  size_t think_scanned_ = 0;  // held block: no "</think>" starts before here
  std::optional<DsmlBlockParser> block_;
  std::vector<Event> held_;  // the held block's events
  Utf8Repair repair_;
};

/// The events of a whole answer, neighbours of one kind and tool joined.
std::vector<Event> parse_output(std::string_view text, const ParserOptions& options);

}  // namespace tandem::v4
