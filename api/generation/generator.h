#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/errors/api_error.h"
#include "api/generation/answer.h"
#include "api/generation/chat_request.h"
#include "api/generation/tool_memory.h"
#include "coordinator/engine/generation.h"
#include "coordinator/sampling/vocabulary_trie.h"
#include "coordinator/tokenizer/encode_cache.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "model/spec/prompt.h"

namespace tandem::api {

struct GeneratorOptions {
  int64_t max_tokens = 393216;               // where the request names none
  Effort effort = Effort::kLow;              // where the request names none
  bool effort_native = false;                // serve high and max as asked; else as low
  bool client_sampling_in_thinking = false;  // else thinking uses the server's own parameters
  SamplingParams sampling;                   // the server's own
  bool replays_reasoning = true;             // of older turns, where tools are in play
  bool reminds_of_calls = true;
  int64_t reminder_min_bytes = 96 << 10;     // of conversation before the result that carries it
  int64_t tool_ids_max = kToolReplayIdsMax;  // 0: no exact replay
  bool keeps_rendered = false;               // fill Prepared::rendered
};

/// A request that is ready for the engine.
struct Prepared {
  GenerationRequest generation;  // without listener and seed
  std::string rendered;          // the prompt as text, for people; see keeps_rendered
  Effort effort = Effort::kLow;
  bool tools_active = false;
};

/// From requests to prompts: thinking, tools, replay, constraints and budgets. Knows no surface and
/// no family.
/// Threads: any.
class Generator {
 public:
  /// `protocol` outlives it.
  Generator(
      const GeneratorOptions& options, std::shared_ptr<const Tokenizer> tokenizer,
      const PromptProtocol& protocol, int64_t context_tokens);

  /// Errors: 400 with the field; context_length_exceeded.
  ApiResult<Prepared> prepare(const ChatRequest& request);
  /// Tokens of the whole rendered prompt, of any length. Errors: as prepare.
  ApiResult<int64_t> count_tokens(const ChatRequest& request);

  ToolMemory& tool_memory() { return tool_memory_; }
  const ToolMemory& tool_memory() const { return tool_memory_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const GeneratorOptions& options() const { return options_; }
  int64_t context_tokens() const { return context_tokens_; }
  /// The effort that a request is served with.
  Effort effort(const ChatRequest& request) const;

 private:
  ApiResult<Prepared> render(const ChatRequest& request);
  std::vector<Message> conversation(const ChatRequest& request, bool thinks);
  void add_reminders(std::vector<Message>& messages) const;
  Status constrain(const ChatRequest& request, bool thinks, GenerationRequest& out);
  std::vector<int32_t> stop_tokens() const;
  Result<std::shared_ptr<TokenConstraint>> constraint(const ChatRequest& request);
  Result<std::shared_ptr<const VocabularyTrie>> vocabulary();

  const GeneratorOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  EncodeCache encoder_;
  const PromptProtocol& protocol_;
  const int64_t context_tokens_;
  ToolMemory tool_memory_;
  std::mutex vocabulary_mutex_;
  std::shared_ptr<const VocabularyTrie> vocabulary_;  // made when a schema first needs it
};

}  // namespace tandem::api
