#include "api/generation/generator.h"

#include <algorithm>

#include "api/generation/constraints.h"
#include "api/json/json.h"
#include "coordinator/sampling/json_constraint.h"

namespace tandem::api {
namespace {

constexpr int64_t kMaxEffortContext = 393216;  // below, the longest reasoning has no room

constexpr std::string_view kCallReminder =
    "\n\n(Reminder: to call a tool, write a tool call block exactly as the Tools section shows.)";

constexpr std::string_view kMustCall = "You must answer with a tool call.";

ThinkMode think_mode(Effort effort) {
  switch (effort) {
    case Effort::kNone: return ThinkMode::kOff;
    case Effort::kLow:
    case Effort::kHigh: return ThinkMode::kHigh;  // the family has no preamble for either
    case Effort::kMax: return ThinkMode::kMax;
  }
  TANDEM_UNREACHABLE();
}

std::string tools_array(const std::vector<Tool>& tools) {
  std::string out = "[";
  for (const Tool& tool : tools) {
    if (out.size() > 1) out += ",";
    out += tool.json;
  }
  return out + "]";
}

int64_t bytes_of(const Message& message) {
  size_t size =
      message.content.size() + message.reasoning.value_or("").size() + message.tools_json.size();
  for (const ToolCall& call : message.tool_calls) size += call.name.size() + call.arguments.size();
  return static_cast<int64_t>(size);
}

/// System text at the head is one message, in which the parts are told apart by a blank line. Later
/// system text is said at its place, as part of the user's turn there: the prompt format has one
/// system region only.
std::vector<Message> with_one_system_message(const std::vector<Message>& messages) {
  std::vector<Message> out;
  for (const Message& message : messages) {
    const bool is_system = message.role == Role::kSystem || message.role == Role::kDeveloper;
    if (is_system && !out.empty() && out.back().role == Role::kSystem && out.size() == 1) {
      if (!out[0].content.empty() && !message.content.empty()) out[0].content += "\n\n";
      out[0].content += message.content;
      continue;
    }
    out.push_back(message);
    if (is_system) out.back().role = out.size() == 1 ? Role::kSystem : Role::kUser;
  }
  return out;
}

bool uses_tools(const std::vector<Message>& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const Message& message) {
    return message.role == Role::kTool || !message.tool_calls.empty();
  });
}

}  // namespace

Generator::Generator(
    const GeneratorOptions& options, std::shared_ptr<const Tokenizer> tokenizer,
    const PromptProtocol& protocol, int64_t context_tokens)
    : options_(options),
      tokenizer_(std::move(tokenizer)),
      encoder_(tokenizer_),
      protocol_(protocol),
      context_tokens_(context_tokens),
      tool_memory_(options.tool_ids_max) {}

Effort Generator::effort(const ChatRequest& request) const {
  Effort effort = request.effort.value_or(options_.effort);
  // The preamble of the higher levels damages tool calls in deep contexts, so that clients get it
  // only where the operator wants it.
  const bool asked_by_client = request.effort.has_value();
  if (asked_by_client && !options_.effort_native && effort != Effort::kNone) effort = Effort::kLow;
  if (effort == Effort::kMax && context_tokens_ < kMaxEffortContext) effort = Effort::kHigh;
  return effort;
}

std::vector<Message> Generator::conversation(const ChatRequest& request, bool thinks) {
  std::vector<Message> messages = with_one_system_message(request.messages);
  const bool tools_active = !request.tools.empty() && request.tool_choice != ToolChoice::kNone;
  if (tools_active) {
    if (messages.empty() || messages.front().role != Role::kSystem) {
      Message system;
      system.role = Role::kSystem;
      messages.insert(messages.begin(), std::move(system));
    }
    messages.front().tools_json = tools_array(request.tools);
    const bool must_call =
        request.tool_choice == ToolChoice::kRequired || request.tool_choice == ToolChoice::kNamed;
    if (must_call) {
      std::string& content = messages.front().content;
      if (!content.empty()) content += "\n\n";
      content += kMustCall;
    }
  }
  if (!options_.replays_reasoning || !thinks) {
    const auto last_user = std::find_if(
        messages.rbegin(), messages.rend(),
        [](const Message& message) { return message.role == Role::kUser; });
    for (auto it = last_user; it != messages.rend(); ++it) it->reasoning.reset();
  }
  add_reminders(messages);
  tool_memory_.attach(messages);
  return messages;
}

void Generator::add_reminders(std::vector<Message>& messages) const {
  if (!options_.reminds_of_calls) return;
  // Whether a result carries the reminder depends on what stands before it alone, so that its text
  // is the same in every later turn.
  int64_t bytes_before = 0;
  int64_t reminded_at = 0;
  for (Message& message : messages) {
    const int64_t bytes = bytes_of(message);
    if (message.role == Role::kTool && bytes_before - reminded_at >= options_.reminder_min_bytes) {
      message.content += kCallReminder;
      reminded_at = bytes_before;
    }
    bytes_before += bytes;
  }
}

ApiResult<Prepared> Generator::render(const ChatRequest& request) {
  Prepared out;
  out.effort = effort(request);
  const bool thinks = out.effort != Effort::kNone;
  out.tools_active = !request.tools.empty() && request.tool_choice != ToolChoice::kNone;

  const std::vector<Message> messages = conversation(request, thinks);
  RenderOptions options;
  options.think = think_mode(out.effort);
  options.drop_old_reasoning = !uses_tools(messages);
  const auto pieces = protocol_.render(messages, options);
  if (!pieces.ok()) return api_error(pieces.status());
  if (options_.keeps_rendered) {
    for (const Piece& piece : *pieces) out.rendered += piece.bytes;
  }
  const Status encoded = encoder_.encode(*pieces, out.generation.prompt);
  if (!encoded.ok()) return api_error(encoded);
  return out;
}

ApiResult<int64_t> Generator::count_tokens(const ChatRequest& request) {
  auto prepared = render(request);
  if (!prepared.ok()) return prepared.error();
  return static_cast<int64_t>(prepared->generation.prompt.size());
}

ApiResult<Prepared> Generator::prepare(const ChatRequest& request) {
  auto prepared = render(request);
  if (!prepared.ok()) return prepared;
  GenerationRequest& generation = prepared->generation;
  const auto num_prompt_tokens = static_cast<int64_t>(generation.prompt.size());
  if (num_prompt_tokens >= context_tokens_) {
    return prompt_too_long(num_prompt_tokens, context_tokens_, request.prompt_param);
  }
  const bool thinks = prepared->effort != Effort::kNone;
  generation.sampling = request.sampling;
  if (thinks && !options_.client_sampling_in_thinking) {
    generation.sampling.temperature = options_.sampling.temperature;
    generation.sampling.top_p = options_.sampling.top_p;
    generation.sampling.min_p = options_.sampling.min_p;
    generation.sampling.top_k = options_.sampling.top_k;
  }
  generation.max_tokens = request.max_tokens.value_or(options_.max_tokens);
  generation.stop = request.stop;
  generation.parser = ParserOptions{thinks, prepared->tools_active};
  const Status status = constrain(request, thinks, generation);
  if (!status.ok()) {
    ApiError error = api_error(status);
    error.param = request.format == OutputFormat::kText ? "tool_choice" : request.format_param;
    return error;
  }
  return prepared;
}

Status Generator::constrain(const ChatRequest& request, bool thinks, GenerationRequest& out) {
  TANDEM_TRY_ASSIGN(std::shared_ptr<TokenConstraint> inner, constraint(request));
  if (inner == nullptr) return {};
  if (thinks) {
    const std::string end(protocol_.reasoning_end());
    TANDEM_REQUIRE(
        tokenizer_->special_id(end).has_value(),
        "constrained output needs thinking off: the vocabulary does not mark its end");
    // A call written inside reasoning whose end was forgotten counts if the answer stops there.
    const bool may_stop = request.format == OutputFormat::kText;
    inner = std::make_shared<AfterReasoning>(
        tokenizer_, end, may_stop ? std::vector<int32_t>{} : stop_tokens(), std::move(inner));
  }
  out.constraint = std::move(inner);
  return {};
}

std::vector<int32_t> Generator::stop_tokens() const {
  std::vector<int32_t> out;
  for (const std::string& spelling : protocol_.stop_tokens()) {
    if (const auto id = tokenizer_->special_id(spelling)) out.push_back(*id);
  }
  return out;
}

Result<std::shared_ptr<TokenConstraint>> Generator::constraint(const ChatRequest& request) {
  const bool tools_active = !request.tools.empty() && request.tool_choice != ToolChoice::kNone;
  if (request.format != OutputFormat::kText) {
    TANDEM_REQUIRE(
        !tools_active, "a response format cannot be combined with tools that may be called");
    TANDEM_TRY_ASSIGN(
        JsonGrammar grammar, request.format == OutputFormat::kJsonObject
                                 ? Result<JsonGrammar>(JsonGrammar::any_object())
                                 : JsonGrammar::from_schema(request.schema_json));
    TANDEM_TRY_ASSIGN(auto vocabulary_trie, vocabulary());
    std::vector<int32_t> end_tokens = stop_tokens();
    // Only the first: the others end a turn too, but the model was trained to write this one.
    end_tokens.resize(std::min<size_t>(end_tokens.size(), 1));
    TANDEM_TRY_ASSIGN(
        JsonConstraint made, JsonConstraint::create(
                                 std::make_shared<const JsonGrammar>(std::move(grammar)),
                                 std::move(vocabulary_trie), std::move(end_tokens)));
    return std::shared_ptr<TokenConstraint>(std::make_shared<JsonConstraint>(std::move(made)));
  }
  const bool must_call =
      request.tool_choice == ToolChoice::kRequired || request.tool_choice == ToolChoice::kNamed;
  if (!must_call || !tools_active) return std::shared_ptr<TokenConstraint>();
  std::vector<int32_t> opening;
  // With one tool to choose from, required means that one.
  const std::string& name = request.tool_choice == ToolChoice::kNamed ? request.tool_name
                            : request.tools.size() == 1               ? request.tools[0].name
                                                                      : request.tool_name;
  TANDEM_TRY(tokenizer_->encode(protocol_.call_opening(name), opening));
  return std::shared_ptr<TokenConstraint>(std::make_shared<StartsWith>(std::move(opening)));
}

Result<std::shared_ptr<const VocabularyTrie>> Generator::vocabulary() {
  const std::lock_guard lock(vocabulary_mutex_);
  if (vocabulary_ != nullptr) return vocabulary_;
  TANDEM_TRY_ASSIGN(
      VocabularyTrie made,
      VocabularyTrie::create(tokenizer_->size(), [&](int32_t id) -> std::string_view {
        return tokenizer_->is_special(id) ? std::string_view() : tokenizer_->token_bytes(id);
      }));
  vocabulary_ = std::make_shared<const VocabularyTrie>(std::move(made));
  return vocabulary_;
}

}  // namespace tandem::api
