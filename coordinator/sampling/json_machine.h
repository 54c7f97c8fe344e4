#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "coordinator/sampling/json_grammar.h"

namespace tandem {

/// Follows JSON text byte by byte along a grammar.
///
/// A frame is one place in one value together with all that encloses it; equal frames have one id,
/// so that a set of ids tells everything about what may follow. Whitespace between tokens is held
/// to 64 bytes, a number to 32 with an exponent of two digits, which every reader takes, nesting to
/// kJsonDepthMax; no whitespace follows the whole value. Escaped surrogates come in pairs. Bytes
/// from 0x80 on are taken as part of a string without a look at the characters they form.
///
/// Threads: one owner.
class JsonMachine {
 public:
  using FrameId = uint32_t;
  /// Ascending; more than kFramesMax possible readings are cut to the first, which only narrows
  /// what is admitted.
  using FrameSet = std::vector<FrameId>;
  static constexpr size_t kFramesMax = 256;

  explicit JsonMachine(std::shared_ptr<const JsonGrammar> grammar);

  /// Before the first byte.
  FrameSet start();

  /// Replaces `next` with what may follow when `byte` comes after `from`; empty if it may not come.
  void step(const FrameSet& from, uint8_t byte, FrameSet* next);

  /// Whether the bytes so far are a whole value.
  bool is_complete(const FrameSet& frames) const;

  /// Whether a frame is in the plain part of a string.
  bool is_in_string(FrameId frame) const { return frames_[frame].state == State::kString; }

  /// Frames made so far, in use or not.
  size_t num_frames() const { return frames_.size(); }
  /// Drops all frames but those of `live` and what encloses them, and renames these.
  void collect(FrameSet* live);

 private:
  enum class State : uint8_t {
    kDone,
    kValue,         // a value may start
    kString,        // a, b unused
    kStringEscape,  // after a backslash
    kStringHex,     // a: hexadecimal digits to come, b: EscapeKind
    kStringPair,    // between the two escapes of a surrogate pair, b: EscapeKind
    kNumber,        // a: NumberState, b: bytes so far
    kLiteral,       // literals [a, b) agree so far, c: bytes so far
    kObjectFirst,   // after the opening brace; kMap too
    kObjectKey,     // after a comma, a: next property; kMap too
    kPropertyKey,   // inside the key of property a, c: bytes so far
    kColon,         // a: property; kMap too
    kObjectAfter,   // after a value, a: next property; kMap too
    kArrayFirst,
    kArrayAfter  // a: items so far, up to the last number that matters
  };
  struct Frame {
    FrameId parent = 0;  // where the text goes on when this value is over
    uint32_t node = 0;
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t c = 0;
    uint16_t depth = 0;  // containers open
    State state = State::kDone;
    uint8_t space = 0;  // whitespace bytes since the last token

    bool operator==(const Frame&) const = default;
  };
  struct FrameHash {
    size_t operator()(const Frame& frame) const;
  };

  FrameId intern(const Frame& frame);

  void step_frame(FrameId id, uint8_t byte, FrameSet* next);
  void start_value(const Frame& value, uint8_t byte, FrameSet* next);
  void step_string(Frame frame, FrameId id, uint8_t byte, FrameSet* next);
  void step_number(Frame frame, uint8_t byte, FrameSet* next);
  void step_literal(Frame frame, uint8_t byte, FrameSet* next);
  void step_property_key(Frame frame, uint8_t byte, FrameSet* next);
  void step_colon(Frame frame, uint8_t byte, FrameSet* next);
  void step_object(Frame frame, uint8_t byte, FrameSet* next);
  void step_array(Frame frame, uint8_t byte, FrameSet* next);
  void start_key(const Frame& frame, FrameSet* next);
  bool fits(uint32_t node, uint16_t depth) const;

  std::shared_ptr<const JsonGrammar> grammar_;
  std::vector<Frame> frames_;
  std::unordered_map<Frame, FrameId, FrameHash> ids_;
};

}  // namespace tandem
