#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tandem {

/// Who speaks. `kTool` carries the result of one call. `kLatestReminder` is DeepSeek's reminder
/// role.
enum class Role { kSystem, kDeveloper, kUser, kAssistant, kTool, kLatestReminder };

/// One call that an assistant message makes.
struct ToolCall {
  std::string id;  // opaque; joins the call with its result
  std::string name;
  std::string arguments;  // a JSON object as text; any other text is kept and rendered as it is
  // The exact text that the model sampled for the whole block, on the first call of a message only.
  // When set, the renderer replays it instead of writing the calls anew, so that cached tokens
  // match.
  std::string sampled_block;
};

struct Message {
  Role role = Role::kUser;
  std::string content;
  std::optional<std::string> reasoning;  // assistant only
  std::vector<ToolCall> tool_calls;      // assistant only
  std::string tool_call_id;              // tool only
  std::string tools_json;            // system and developer: array of function objects, or empty
  std::string response_format_json;  // system and developer: a JSON value, or empty
  std::string task;                  // user: "action", "query", ...; empty for a chat
};

enum class ThinkMode { kOff, kHigh, kMax };

struct RenderOptions {
  ThinkMode think = ThinkMode::kOff;
  bool drop_old_reasoning = true;  // ignored (false) once a message declares tools
  bool add_generation_prompt = true;
};

/// A span of a rendered prompt. Text never becomes a control token, whatever it spells.
struct Piece {
  enum class Kind { kText, kControl };
  Kind kind = Kind::kText;
  std::string bytes;  // kControl: the exact spelling of one special token

  friend bool operator==(const Piece&, const Piece&) = default;
};

/// What a model's output means, in order.
struct Event {
  enum class Kind {
    kReasoning,      // data: more reasoning text
    kContent,        // data: more visible text
    kToolBegin,      // data: the tool's name; tool_idx counts from 0
    kToolArguments,  // data: more of the arguments' JSON text; the pieces joined are one JSON
                     // object
    kToolEnd,        // data: empty
    kToolBlockEnd,  // data: the exact sampled text of the whole block, for replay; the turn is over
    kParseError,    // data: one line; the text that could not be parsed follows as kContent
  };
  Kind kind = Kind::kContent;
  std::string data;
  int tool_idx = 0;

  friend bool operator==(const Event&, const Event&) = default;
};

/// Turns sampled text into events as it arrives. Any split of the bytes gives the same events once
/// neighbouring events of one kind (and tool_idx) are joined.
/// Threads: one owner.
class StreamParser {
 public:
  virtual ~StreamParser() = default;
  /// `bytes` are whole UTF-8 characters or not; incomplete ones are held back.
  virtual void push(std::string_view bytes, std::vector<Event>& out) = 0;
  /// A special token was sampled, of this spelling. Where it marks nothing it is dropped, so that
  /// nobody sees it as text.
  virtual void push_control(std::string_view spelling, std::vector<Event>& out) = 0;
  /// The output ended (stop token, length or cancel); flushes what was held back.
  virtual void finish(std::vector<Event>& out) = 0;
  /// Whether the next token belongs to tool-call structure and is to be sampled greedily.
  virtual bool in_structure() const = 0;
  /// Whether a tool block has closed: the turn is over.
  virtual bool turn_complete() const = 0;
};

struct ParserOptions {
  bool starts_in_reasoning = false;  // the prompt ended with the opening think tag
  bool tools_active = false;         // without it, tool syntax is ordinary text
};

struct SamplingDefaults {
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int top_k = 0;
};

/// How a family writes a conversation as a prompt and reads the answer. Immutable.
/// Threads: any.
class PromptProtocol {
 public:
  virtual ~PromptProtocol() = default;
  /// Errors: kInvalidArgument names the message and what is wrong with it.
  virtual Result<std::vector<Piece>> render(
      std::span<const Message> messages, const RenderOptions& options) const = 0;
  virtual std::unique_ptr<StreamParser> parser(const ParserOptions& options) const = 0;
  /// Spellings of the special tokens that end a turn.
  virtual std::span<const std::string> stop_tokens() const = 0;
  /// Spelling of the token that starts every prompt; empty if there is none.
  virtual std::string_view bos() const = 0;
  virtual SamplingDefaults sampling() const = 0;
  /// Spelling of the token that ends reasoning; empty if the family has none.
  virtual std::string_view reasoning_end() const = 0;
  /// How an answer that calls a tool starts, up to the tool's name or, with `tool_name`, behind it.
  /// An answer that is made to start like this calls a tool.
  virtual std::vector<Piece> call_opening(std::string_view tool_name) const = 0;
};

}  // namespace tandem
