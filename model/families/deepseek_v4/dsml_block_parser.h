#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "model/families/deepseek_v4/dsml_tag.h"
#include "model/spec/prompt.h"

namespace tandem::v4 {

inline constexpr size_t kToolBlockBytesMax = size_t{4} << 20;
inline constexpr int kToolCallsMax = 256;         // of one block
inline constexpr int kParameterDepthMax = 16;     // parameters inside parameters
inline constexpr size_t kStrayBytesMax = 16;      // skipped between the elements of one block
inline constexpr size_t kSeparatorBytesMax = 64;  // whitespace that a decision may wait across

/// How a block began, which says what else may prove that it is one.
enum class BlockOpening {
  kMarked,      // <｜DSML｜tool_calls>: a block, whatever follows
  kPlain,       // <tool_calls>: a block if a call follows, else text
  kMisspelled,  // another tag with the marker: a block if a call follows, else an error
  kBareCall,    // the first call itself, with no block around it
};

/// Reads one tool block and reports its calls while it arrives. Each value's closer may be of any
/// spelling; one that is less marked than its opener, or that stands inside a JSON string, counts
/// only if the block goes on after it, so that a value may contain "</parameter>".
///
/// Missing closers of a call are supplied if the next element makes the place certain. A parameter
/// without the `string` attribute is text, or an object if parameters follow inside. A value that
/// is not JSON where JSON was announced becomes a JSON string; an empty one becomes null. Repeated
/// names stay in the JSON text, where the last one counts.
/// Threads: one owner.
class DsmlBlockParser {
 public:
  enum class State {
    kRunning,
    kDone,
    kNotABlock,  // nothing was reported; the opener is text
    kFailed,     // error() says why; a call in progress was closed as valid JSON
  };

  /// `strict`: an element that is not understood fails the block; nothing is skipped.
  /// `start`: where the first call is looked for in the text of advance(); after the opener, or at
  /// the bare call.
  DsmlBlockParser(BlockOpening opening, size_t start, bool strict)
      : opening_(opening), num_stray_left_(strict ? 0 : kStrayBytesMax), pos_(start) {}

  /// Goes on from byte `pos()` of `text`; each call has the same bytes or more.
  State advance(std::string_view text, std::vector<Event>& out);

  /// The text ended. kDone only for bare calls that are whole; a block without its closer fails.
  State finish(std::vector<Event>& out);

  /// Fails the block from outside.
  State fail(std::string_view message, std::vector<Event>& out);

  size_t pos() const { return pos_; }
  /// kDone: end of the block in `text`.
  size_t end() const { return end_; }
  int num_calls() const { return num_calls_; }
  const std::string& error() const { return error_; }

  /// Whether the next byte belongs to structure: everything but the inside of a string value and of
  /// a string in a JSON value.
  bool in_structure() const { return in_structure_; }

 private:
  enum class Place { kCalls, kParameters, kValueStart, kString, kJson };
  enum class Step { kGo, kWait };
  enum class Answer { kYes, kNo, kWait };

  Step step(std::vector<Event>& out);
  Step between_calls(std::vector<Event>& out);
  Step between_parameters(std::vector<Event>& out);
  Step value_start(std::vector<Event>& out);
  Step string_value(std::vector<Event>& out);
  Step json_value(std::vector<Event>& out);

  Step begin_call(const DsmlTag& tag, std::vector<Event>& out);
  void end_call(std::vector<Event>& out);
  Step begin_parameter(const DsmlTag& tag, std::vector<Event>& out);
  void end_string(std::vector<Event>& out);
  void end_json(std::string_view body, std::vector<Event>& out);
  Step stray(std::string_view what, std::vector<Event>& out);
  Step not_confirmed(bool at_other_tag, std::vector<Event>& out);
  Step failed(std::string_view message, std::vector<Event>& out);

  /// Whether the value ends at the '<' at pos_. Sets `closer_bytes`, of use with kYes only.
  Answer ends_value(bool in_json_string, size_t& closer_bytes) const;
  /// Whether the element at `pos`, after whitespace, is one that can follow a value or call.
  Answer continues_at(size_t pos, bool after_call) const;

  void add_arguments(std::string_view json, std::vector<Event>& out) const;
  void add_key(std::vector<Event>& out);
  void skip_space();
  void update_structure();

  BlockOpening opening_;
  size_t num_stray_left_;
  State state_ = State::kRunning;
  Place place_ = Place::kCalls;
  std::string_view text_;  // valid inside advance() only
  size_t pos_ = 0;
  size_t end_ = 0;
  int num_calls_ = 0;  // begun
  bool in_call_ = false;
  bool in_structure_ = true;
  std::string error_;

  // The value that is read.
  std::string key_;
  bool value_has_marker_ = false;
  size_t value_start_ = 0;
  bool in_json_string_ = false;
  bool after_backslash_ = false;
  Utf8Repair repair_;
  std::vector<bool> is_first_;  // for each open object: no member yet
};

}  // namespace tandem::v4
