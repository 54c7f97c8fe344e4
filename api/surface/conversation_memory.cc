#include "api/surface/conversation_memory.h"

#include <algorithm>
#include <set>

namespace tandem::api {
namespace {

int64_t bytes_of(const Message& message) {
  size_t size = sizeof(Message) + message.content.size() + message.reasoning.value_or("").size();
  for (const ToolCall& call : message.tool_calls) {
    size += sizeof(ToolCall) + call.name.size() + call.arguments.size();
  }
  return static_cast<int64_t>(size);
}

bool has_role(const ChatRequest& request, Role role) {
  return std::any_of(request.messages.begin(), request.messages.end(), [&](const Message& message) {
    return message.role == role;
  });
}

ApiError replay_error(int http_status, const std::string& param, const std::string& problem) {
  ApiError error;
  error.http_status = http_status;
  error.param = param;
  error.message = problem + ": send the whole conversation";
  return error;
}

}  // namespace

ConversationMemory::ConversationMemory()
    : ConversationMemory(std::make_unique<SystemClock>(), Limits{}) {}

void ConversationMemory::remember(const ChatRequest& request, const Answer& answer) {
  if (answer.calls.empty() || answer.finish != FinishReason::kToolCalls) return;
  Message said;
  said.role = Role::kAssistant;
  said.content = answer.content;
  if (!answer.reasoning.empty()) said.reasoning = answer.reasoning;
  for (const AnswerCall& call : answer.calls) {
    said.tool_calls.push_back({call.id, call.name, call.arguments, {}});
  }
  std::list<Conversation> made(1);
  Conversation& conversation = made.front();
  conversation.messages = request.messages;
  conversation.messages.push_back(std::move(said));
  conversation.tools = request.tools;
  conversation.made = clock_->now();
  for (const Message& message : conversation.messages) conversation.bytes += bytes_of(message);
  for (const Tool& tool : conversation.tools) {
    conversation.bytes += static_cast<int64_t>(tool.json.size());
  }

  const std::lock_guard lock(mutex_);
  num_bytes_ += conversation.bytes;
  conversations_.splice(conversations_.end(), made);
  const Place place = std::prev(conversations_.end());
  for (const ToolCall& call : place->messages.back().tool_calls) {
    by_call_.insert_or_assign(call.id, place);
  }
  while (conversations_.size() > limits_.conversations || num_bytes_ > limits_.bytes) {
    drop_oldest();
  }
}

void ConversationMemory::drop_oldest() {
  Conversation& oldest = conversations_.front();
  for (const ToolCall& call : oldest.messages.back().tool_calls) by_call_.erase(call.id);
  num_bytes_ -= oldest.bytes;
  conversations_.pop_front();
}

std::optional<ApiError> ConversationMemory::resume(ChatRequest& request) {
  if (has_role(request, Role::kAssistant) || !has_role(request, Role::kTool)) return std::nullopt;
  std::set<std::string> answered;
  for (const Message& message : request.messages) {
    if (message.role == Role::kTool) answered.insert(message.tool_call_id);
  }
  const std::lock_guard lock(mutex_);
  const auto found = by_call_.find(*answered.begin());
  if (found == by_call_.end()) {
    return replay_error(
        400, request.prompt_param, "answers calls that this conversation does not hold");
  }
  const Conversation& conversation = *found->second;
  std::set<std::string> asked;
  for (const ToolCall& call : conversation.messages.back().tool_calls) asked.insert(call.id);
  if (asked != answered) {
    return replay_error(
        409, request.prompt_param, "answers other calls than the last turn has made");
  }
  if (clock_->now() - conversation.made > limits_.age) {
    return replay_error(409, request.prompt_param, "answers calls of too long ago");
  }
  std::vector<Message> messages = conversation.messages;
  const auto first = std::find_if(
      request.messages.begin(), request.messages.end(),
      [](const Message& message) { return message.role != Role::kSystem; });
  messages.insert(
      messages.end(), std::make_move_iterator(first),
      std::make_move_iterator(request.messages.end()));
  request.messages = std::move(messages);
  if (request.tools.empty()) request.tools = conversation.tools;
  return std::nullopt;
}

}  // namespace tandem::api
