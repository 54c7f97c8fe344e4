#include "coordinator/sampling/json_machine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "coordinator/sampling/vocabulary_trie.h"

namespace tandem {
namespace {

constexpr uint8_t kSpaceBytesMax = 64;
constexpr uint32_t kNumberBytesMax = 32;
constexpr JsonMachine::FrameId kDoneFrame = 0;

bool is_space(uint8_t byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}
bool is_digit(uint8_t byte) {
  return byte >= '0' && byte <= '9';
}
bool is_hex(uint8_t byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

/// What of a number has been read.
enum NumberState : uint32_t {
  kSign,
  kZero,
  kDigits,
  kPoint,
  kFraction,
  kExp,
  kExpSign,
  kExpDigit,
  kExpTwoDigits
};
constexpr uint32_t kNumberBroken = 255;

bool may_end(uint32_t state) {
  return state == kZero || state == kDigits || state == kFraction || state == kExpDigit ||
         state == kExpTwoDigits;
}

uint32_t next_number_state(uint32_t state, uint8_t byte, bool integer) {
  const bool exponent = (byte == 'e' || byte == 'E') && !integer;
  const bool point = byte == '.' && !integer;
  switch (static_cast<NumberState>(state)) {
    case kSign: return byte == '0' ? kZero : is_digit(byte) ? kDigits : kNumberBroken;
    case kZero: return point ? kPoint : exponent ? kExp : kNumberBroken;
    case kDigits:
      return is_digit(byte) ? kDigits : point ? kPoint : exponent ? kExp : kNumberBroken;
    case kPoint: return is_digit(byte) ? kFraction : kNumberBroken;
    case kFraction: return is_digit(byte) ? kFraction : exponent ? kExp : kNumberBroken;
    case kExp:
      return is_digit(byte) ? kExpDigit : byte == '-' || byte == '+' ? kExpSign : kNumberBroken;
    case kExpSign: return is_digit(byte) ? kExpDigit : kNumberBroken;
    case kExpDigit: return is_digit(byte) ? kExpTwoDigits : kNumberBroken;
    case kExpTwoDigits: return kNumberBroken;
  }
  TANDEM_UNREACHABLE();
}

/// How far a \u escape has told what it is.
enum EscapeKind : uint32_t {
  kFreeEscape,   // nothing to watch
  kAfterD,       // the first digit was a D: a surrogate if 8 or more follows
  kHighEscape,   // the first half of a pair
  kSecondHalf,   // its second half is due, which starts with a D
  kSecondHalfD,  // and goes on with C to F
  kEscapeBroken
};

EscapeKind next_escape_kind(uint32_t kind, uint8_t digit) {
  const uint8_t lower = digit | 0x20;  // 0x20 is set in the decimal digits already
  const bool is_surrogate = lower == '8' || lower == '9' || lower >= 'a';
  const bool is_low_half = lower >= 'c';
  switch (static_cast<EscapeKind>(kind)) {
    case kAfterD: return is_low_half ? kEscapeBroken : is_surrogate ? kHighEscape : kFreeEscape;
    case kSecondHalf: return lower == 'd' ? kSecondHalfD : kEscapeBroken;
    case kSecondHalfD: return is_low_half ? kFreeEscape : kEscapeBroken;
    case kFreeEscape:
    case kHighEscape:
    case kEscapeBroken: break;
  }
  return static_cast<EscapeKind>(kind);
}

}  // namespace

size_t JsonMachine::FrameHash::operator()(const Frame& frame) const {
  uint64_t hash = 0;
  const auto mix = [&](uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  };
  mix(static_cast<uint64_t>(frame.parent) << 32 | frame.node);
  mix(static_cast<uint64_t>(frame.a) << 32 | frame.b);
  mix(static_cast<uint64_t>(frame.c) << 32 | static_cast<uint64_t>(frame.depth) << 16 |
      static_cast<uint64_t>(frame.state) << 8 | frame.space);
  return static_cast<size_t>(hash);
}

JsonMachine::JsonMachine(std::shared_ptr<const JsonGrammar> grammar)
    : grammar_(std::move(grammar)) {
  intern(Frame{});
}

JsonMachine::FrameSet JsonMachine::start() {
  Frame frame;
  frame.parent = kDoneFrame;
  frame.node = grammar_->root();
  frame.state = State::kValue;
  return {intern(frame)};
}

JsonMachine::FrameId JsonMachine::intern(const Frame& frame) {
  const auto [place, is_new] = ids_.try_emplace(frame, static_cast<FrameId>(frames_.size()));
  if (is_new) frames_.push_back(frame);
  return place->second;
}

void JsonMachine::step(const FrameSet& from, uint8_t byte, FrameSet* next) {
  next->clear();
  for (const FrameId id : from) step_frame(id, byte, next);
  std::sort(next->begin(), next->end());
  next->erase(std::unique(next->begin(), next->end()), next->end());
  if (next->size() > kFramesMax) next->resize(kFramesMax);
}

bool JsonMachine::is_complete(const FrameSet& frames) const {
  return std::any_of(frames.begin(), frames.end(), [&](FrameId id) {
    const Frame& frame = frames_[id];
    return frame.state == State::kDone ||
           (frame.state == State::kNumber && frame.parent == kDoneFrame && may_end(frame.a));
  });
}

void JsonMachine::collect(FrameSet* live) {
  const std::vector<Frame> old = std::exchange(frames_, {});
  ids_.clear();
  constexpr FrameId kUnmoved = ~FrameId{0};
  std::vector<FrameId> moved(old.size(), kUnmoved);
  moved[kDoneFrame] = intern(old[kDoneFrame]);
  for (FrameId& id : *live) {
    // From the innermost not yet moved out to one that has, and back in.
    std::vector<FrameId> path;
    for (FrameId at = id; moved[at] == kUnmoved; at = old[at].parent) path.push_back(at);
    for (size_t i = path.size(); i-- > 0;) {
      Frame frame = old[path[i]];
      frame.parent = moved[frame.parent];
      moved[path[i]] = intern(frame);
    }
    id = moved[id];
  }
  std::sort(live->begin(), live->end());
}

/// Whether a value of `node` can be finished with `depth` containers open around it.
bool JsonMachine::fits(uint32_t node, uint16_t depth) const {
  return grammar_->node(node).min_depth <= kJsonDepthMax - static_cast<int64_t>(depth);
}

void JsonMachine::step_frame(FrameId id, uint8_t byte, FrameSet* next) {
  Frame frame = frames_[id];
  const bool between_tokens = frame.state == State::kValue || frame.state == State::kObjectFirst ||
                              frame.state == State::kObjectKey || frame.state == State::kColon ||
                              frame.state == State::kObjectAfter ||
                              frame.state == State::kArrayFirst ||
                              frame.state == State::kArrayAfter;
  if (between_tokens && is_space(byte)) {
    if (frame.space == kSpaceBytesMax) return;
    ++frame.space;
    next->push_back(intern(frame));
    return;
  }
  frame.space = 0;
  switch (frame.state) {
    case State::kDone: return;
    case State::kValue: return start_value(frame, byte, next);
    case State::kString:
    case State::kStringEscape:
    case State::kStringHex:
    case State::kStringPair: return step_string(frame, id, byte, next);
    case State::kNumber: return step_number(frame, byte, next);
    case State::kLiteral: return step_literal(frame, byte, next);
    case State::kPropertyKey: return step_property_key(frame, byte, next);
    case State::kColon: return step_colon(frame, byte, next);
    case State::kObjectFirst:
    case State::kObjectKey:
    case State::kObjectAfter: return step_object(frame, byte, next);
    case State::kArrayFirst:
    case State::kArrayAfter: return step_array(frame, byte, next);
  }
}

void JsonMachine::start_value(const Frame& value, uint8_t byte, FrameSet* next) {
  for (const uint32_t id : grammar_->node(value.node).concrete) {
    const JsonNode& node = grammar_->node(id);
    if (!fits(id, value.depth)) continue;
    Frame frame;
    frame.parent = value.parent;
    frame.node = id;
    frame.depth = value.depth;
    switch (node.kind) {
      case JsonKind::kAnyOf: TANDEM_UNREACHABLE();
      case JsonKind::kString:
        if (byte != '"') continue;
        frame.state = State::kString;
        break;
      case JsonKind::kNumber:
      case JsonKind::kInteger:
        if (byte != '-' && !is_digit(byte)) continue;
        frame.state = State::kNumber;
        frame.a = byte == '-' ? kSign : byte == '0' ? kZero : kDigits;
        frame.b = 1;
        break;
      case JsonKind::kLiterals:
        frame.state = State::kLiteral;
        frame.b = static_cast<uint32_t>(node.literals.size());
        step_literal(frame, byte, next);
        continue;
      case JsonKind::kObject:
      case JsonKind::kMap:
        if (byte != '{') continue;
        frame.state = State::kObjectFirst;
        ++frame.depth;
        break;
      case JsonKind::kArray:
        if (byte != '[') continue;
        frame.state = State::kArrayFirst;
        ++frame.depth;
        break;
    }
    next->push_back(intern(frame));
  }
}

void JsonMachine::step_string(Frame frame, FrameId id, uint8_t byte, FrameSet* next) {
  switch (frame.state) {
    case State::kStringEscape:
      if (byte == 'u') {
        frame.state = State::kStringHex;
        frame.a = 4;
      } else if (frame.b == kSecondHalf) {
        return;
      } else if (
          std::string_view("\"\\/bfnrt").find(static_cast<char>(byte)) != std::string_view::npos) {
        frame.state = State::kString;
      } else {
        return;
      }
      break;
    case State::kStringHex:
      if (!is_hex(byte)) return;
      if (frame.a == 4 && frame.b == kFreeEscape) {
        frame.b = (byte | 0x20) == 'd' ? kAfterD : kFreeEscape;
      } else {
        frame.b = next_escape_kind(frame.b, byte);
      }
      if (frame.b == kEscapeBroken) return;
      if (--frame.a > 0) break;
      frame.state = frame.b == kHighEscape ? State::kStringPair : State::kString;
      frame.b = frame.b == kHighEscape ? kSecondHalf : kFreeEscape;
      break;
    case State::kStringPair:
      if (byte != '\\') return;
      frame.state = State::kStringEscape;
      break;
    default:
      if (!needs_care_in_json_string(byte)) return next->push_back(id);
      if (byte == '"') return next->push_back(frame.parent);
      if (byte != '\\') return;
      frame.state = State::kStringEscape;
      break;
  }
  next->push_back(intern(frame));
}

void JsonMachine::step_number(Frame frame, uint8_t byte, FrameSet* next) {
  const bool integer = grammar_->node(frame.node).kind == JsonKind::kInteger;
  const uint32_t state = next_number_state(frame.a, byte, integer);
  if (state != kNumberBroken) {
    // The last byte has to leave a whole number: a point, an exponent or a sign needs a digit.
    const uint32_t room = may_end(state) ? 0 : 1;
    if (frame.b + 1 + room > kNumberBytesMax) return;
    frame.a = state;
    ++frame.b;
    next->push_back(intern(frame));
    return;
  }
  // Only the byte after a number tells that it is over; that byte belongs to what encloses it.
  if (may_end(frame.a)) step_frame(frame.parent, byte, next);
}

void JsonMachine::step_literal(Frame frame, uint8_t byte, FrameSet* next) {
  const std::vector<std::string>& literals = grammar_->node(frame.node).literals;
  const uint32_t place = frame.c;
  // All of [a, b) agree up to `place` and are longer, and are sorted, so those with this byte next
  // are neighbours.
  const auto byte_of = [&](const std::string& literal) {
    return static_cast<uint8_t>(literal[place]);
  };
  const auto begin = literals.begin() + frame.a;
  const auto end = literals.begin() + frame.b;
  const auto low = std::lower_bound(
      begin, end, byte, [&](const std::string& l, uint8_t b) { return byte_of(l) < b; });
  const auto high = std::upper_bound(
      low, end, byte, [&](uint8_t b, const std::string& l) { return b < byte_of(l); });
  if (low == high) return;
  frame.a = static_cast<uint32_t>(low - literals.begin());
  frame.b = static_cast<uint32_t>(high - literals.begin());
  ++frame.c;
  if (low->size() == frame.c) {  // the shortest sorts first, and no two are alike
    next->push_back(frame.parent);
    ++frame.a;
  }
  if (frame.a < frame.b) next->push_back(intern(frame));
}

/// After the opening quote of a key.
void JsonMachine::start_key(const Frame& object, FrameSet* next) {
  Frame frame = object;
  const JsonNode& node = grammar_->node(object.node);
  if (node.kind == JsonKind::kMap) {
    frame.state = State::kColon;
    const FrameId colon = intern(frame);
    Frame key;
    key.parent = colon;
    key.depth = object.depth;
    key.state = State::kString;
    next->push_back(intern(key));
    return;
  }
  frame.state = State::kPropertyKey;
  for (uint32_t i = object.a; i < node.properties.size(); ++i) {
    if (fits(node.properties[i].node, object.depth)) {
      frame.a = i;
      next->push_back(intern(frame));
    }
    if (node.properties[i].required) break;
  }
}

void JsonMachine::step_property_key(Frame frame, uint8_t byte, FrameSet* next) {
  const std::string& spelling = grammar_->node(frame.node).properties[frame.a].spelling;
  if (static_cast<uint8_t>(spelling[frame.c]) != byte) return;
  if (++frame.c == spelling.size()) {
    frame.c = 0;
    frame.state = State::kColon;
  }
  next->push_back(intern(frame));
}

void JsonMachine::step_colon(Frame frame, uint8_t byte, FrameSet* next) {
  if (byte != ':') return;
  const JsonNode& node = grammar_->node(frame.node);
  Frame value;
  value.node = node.kind == JsonKind::kMap ? node.child : node.properties[frame.a].node;
  value.depth = frame.depth;
  value.state = State::kValue;
  frame.state = State::kObjectAfter;
  if (node.kind == JsonKind::kObject) ++frame.a;
  value.parent = intern(frame);
  next->push_back(intern(value));
}

void JsonMachine::step_object(Frame frame, uint8_t byte, FrameSet* next) {
  const JsonNode& node = grammar_->node(frame.node);
  bool more = node.kind == JsonKind::kMap && fits(node.child, frame.depth);
  for (uint32_t i = frame.a; i < node.properties.size() && !more; ++i) {
    more = fits(node.properties[i].node, frame.depth);
  }
  if (byte == '"') {
    if (more && frame.state != State::kObjectAfter) start_key(frame, next);
    return;
  }
  if (byte == '}') {
    if (frame.state == State::kObjectKey) return;
    for (uint32_t i = frame.a; i < node.properties.size(); ++i) {
      if (node.properties[i].required) return;
    }
    next->push_back(frame.parent);
    return;
  }
  if (byte != ',' || frame.state != State::kObjectAfter || !more) return;
  frame.state = State::kObjectKey;
  next->push_back(intern(frame));
}

void JsonMachine::step_array(Frame frame, uint8_t byte, FrameSet* next) {
  const JsonNode& node = grammar_->node(frame.node);
  const auto count = static_cast<int64_t>(frame.a);
  const bool room = node.max_items < 0 || count < node.max_items;
  if (byte == ']') {
    if (count >= node.min_items) next->push_back(frame.parent);
    return;
  }
  const bool first = frame.state == State::kArrayFirst;
  if (!room || !fits(node.child, frame.depth) || (!first && byte != ',')) return;
  Frame value;
  value.node = node.child;
  value.depth = frame.depth;
  value.state = State::kValue;
  frame.state = State::kArrayAfter;
  if (node.max_items >= 0 || count < node.min_items) ++frame.a;
  value.parent = intern(frame);
  if (first) {
    start_value(value, byte, next);
  } else {
    next->push_back(intern(value));
  }
}

}  // namespace tandem
