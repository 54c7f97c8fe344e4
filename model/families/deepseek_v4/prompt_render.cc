#include "model/families/deepseek_v4/prompt_render.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "model/families/deepseek_v4/dsml_render.h"
#include "model/families/deepseek_v4/json_text.h"
#include "model/families/deepseek_v4/markers.h"
#include "model/families/deepseek_v4/piece_list.h"

namespace tandem::v4 {
namespace {

constexpr std::string_view kMaxEffort =
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to "
    "resolve the root cause, rigorously stress-testing your logic against all potential paths, "
    "edge cases, and adversarial scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, "
    "considered alternative, and rejected hypothesis to ensure absolutely no assumption is left "
    "unchecked.\n\n";

constexpr std::string_view kActionTask = "action";
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTasks = {{
    {kActionTask, "<｜action｜>"},
    {"query", "<｜query｜>"},
    {"authority", "<｜authority｜>"},
    {"domain", "<｜domain｜>"},
    {"title", "<｜title｜>"},
    {"read_url", "<｜read_url｜>"},
}};

std::string_view task_token(std::string_view task) {
  for (const auto& [name, token] : kTasks) {
    if (name == task) return token;
  }
  return {};
}

/// A part of a user turn: a message's text, or the result of a call.
struct Block {
  const Message* message = nullptr;
  size_t order = 0;  // results: place of the call among the last assistant message's calls
  bool is_result() const { return message->role == Role::kTool; }
};

/// A message after merging.
struct Turn {
  Role role = Role::kUser;
  const Message* message = nullptr;
  size_t message_idx = 0;     // of the first merged message, for errors
  std::vector<Block> blocks;  // user turns only

  std::string_view task() const {
    return role == Role::kUser ? std::string_view(message->task) : std::string_view();
  }
  bool is_user_side() const { return role == Role::kUser || role == Role::kDeveloper; }
};

Status check_message(const Message& message, size_t message_idx) {
  const auto where = [&] { return str_cat("message ", message_idx, ": "); };
  TANDEM_REQUIRE(
      message.task.empty() || message.role == Role::kUser,
      str_cat(where(), "only a user message has a task"));
  TANDEM_REQUIRE(
      message.task.empty() || !task_token(message.task).empty(),
      str_cat(where(), "unknown task \"", message.task, "\""));
  TANDEM_REQUIRE(
      message.tool_calls.empty() || message.role == Role::kAssistant,
      str_cat(where(), "only an assistant message has tool calls"));
  TANDEM_REQUIRE(
      !message.reasoning || message.role == Role::kAssistant,
      str_cat(where(), "only an assistant message has reasoning"));
  return {};
}

std::vector<Turn> merge(std::span<const Message> messages) {
  std::vector<Turn> turns;
  std::unordered_map<std::string_view, size_t> call_order;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    const bool is_tool = message.role == Role::kTool;
    if (message.role == Role::kAssistant && !message.tool_calls.empty()) {
      call_order.clear();
      for (size_t k = 0; k < message.tool_calls.size(); ++k) {
        call_order.insert_or_assign(message.tool_calls[k].id, k);
      }
    }
    if (!is_tool && message.role != Role::kUser) {
      turns.push_back({message.role, &message, i, {}});
      continue;
    }
    Block block{&message, 0};
    if (is_tool) {
      const auto found = call_order.find(message.tool_call_id);
      block.order = found == call_order.end() ? 0 : found->second;
    }
    const bool joins = !turns.empty() && turns.back().role == Role::kUser &&
                       (is_tool || (turns.back().task().empty() && message.task.empty()));
    if (!joins) turns.push_back({Role::kUser, &message, i, {}});
    turns.back().blocks.push_back(block);
  }
  return turns;
}

/// Puts the results of each user turn in the order of the calls; text keeps its places.
void sort_results(std::vector<Turn>& turns) {
  for (Turn& turn : turns) {
    std::vector<Block> results;
    for (const Block& block : turn.blocks) {
      if (block.is_result()) results.push_back(block);
    }
    std::stable_sort(results.begin(), results.end(), [](const Block& a, const Block& b) {
      return a.order < b.order;
    });
    size_t next = 0;
    for (Block& block : turn.blocks) {
      if (block.is_result()) block = results[next++];
    }
  }
}

int64_t last_user_side(const std::vector<Turn>& turns) {
  for (size_t i = turns.size(); i-- > 0;) {
    if (turns[i].is_user_side()) return static_cast<int64_t>(i);
  }
  return -1;
}

class Renderer {
 public:
  Renderer(std::vector<Turn> turns, const RenderOptions& options, bool keeps_reasoning)
      : turns_(std::move(turns)),
        options_(options),
        thinks_(options.think != ThinkMode::kOff),
        keeps_reasoning_(keeps_reasoning) {
    if (thinks_ && !keeps_reasoning_) {
      const int64_t last = last_user_side(turns_);
      size_t idx = 0;
      std::erase_if(turns_, [&](const Turn& turn) {
        return static_cast<int64_t>(idx++) < last && turn.role == Role::kDeveloper;
      });
    }
    last_user_idx_ = last_user_side(turns_);
  }

  Result<std::vector<Piece>> render() {
    out_.control(kBos);
    if (options_.think == ThinkMode::kMax) out_.text(kMaxEffort);
    for (size_t i = 0; i < turns_.size(); ++i) {
      TANDEM_TRY(turn(i));
      after_turn(i);
    }
    return out_.take();
  }

 private:
  Status turn(size_t i) {
    const Turn& turn = turns_[i];
    const Message& message = *turn.message;
    switch (turn.role) {
      case Role::kSystem: out_.text(message.content); return instructions(turn);
      case Role::kDeveloper:
        out_.control(kUser);
        out_.text(message.content);
        return instructions(turn);
      case Role::kUser:
      case Role::kTool:  // merged into user turns
        user(turn);
        return {};
      case Role::kLatestReminder:
        out_.control(kLatestReminder);
        out_.text(message.content);
        return {};
      case Role::kAssistant: assistant(i); return {};
    }
    TANDEM_UNREACHABLE();
  }

  Status instructions(const Turn& turn) {
    const Message& message = *turn.message;
    TANDEM_TRY_ASSIGN(const bool has_tools, declares_tools(message.tools_json));
    if (has_tools) {
      out_.text("\n\n");
      TANDEM_TRY(render_tools(message.tools_json, out_));
    }
    if (message.response_format_json.empty()) return {};
    auto schema = respace_json(message.response_format_json, JsonStyle::kPython);
    TANDEM_REQUIRE(
        schema.ok(),
        str_cat("message ", turn.message_idx, ": response format: ", schema.status().message()));
    out_.text(
        "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n");
    out_.text(*schema);
    return {};
  }

  void user(const Turn& turn) {
    out_.control(kUser);
    for (size_t k = 0; k < turn.blocks.size(); ++k) {
      if (k > 0) out_.text("\n\n");
      const Block& block = turn.blocks[k];
      if (block.is_result()) {
        render_tool_result(block.message->content, out_);
      } else {
        out_.text(block.message->content);
      }
    }
  }

  void assistant(size_t i) {
    const Message& message = *turns_[i].message;
    const bool after_task = i > 0 && !turns_[i - 1].task().empty();
    const bool shows_reasoning =
        thinks_ && (keeps_reasoning_ || static_cast<int64_t>(i) > last_user_idx_) && !after_task;
    if (shows_reasoning) {
      out_.text(message.reasoning.value_or(""));
      out_.control(kThinkClose);
    }
    out_.text(message.content);
    render_calls(message.tool_calls, out_);
    out_.control(kEos);
  }

  /// Writes the assistant marker, or a task's token, where the next turn needs it.
  void after_turn(size_t i) {
    const Turn& turn = turns_[i];
    const bool is_last = i + 1 == turns_.size();
    if (turn.is_user_side()) pending_idx_ = static_cast<int64_t>(i);
    if (turn.role == Role::kSystem && is_last && pending_idx_ < 0) {
      pending_idx_ = static_cast<int64_t>(i);
    }
    const Role next = is_last ? Role::kAssistant : turns_[i + 1].role;
    if (pending_idx_ < 0 || (is_last && !options_.add_generation_prompt) ||
        (next != Role::kAssistant && next != Role::kLatestReminder)) {
      return;
    }
    const std::string_view task = turns_[static_cast<size_t>(pending_idx_)].task();
    const bool is_action = task == kActionTask;
    if (task.empty() || is_action) {
      out_.control(kAssistant);
      const bool opens_reasoning =
          thinks_ && (is_action || keeps_reasoning_ || pending_idx_ >= last_user_idx_);
      out_.control(opens_reasoning ? kThinkOpen : kThinkClose);
    }
    if (!task.empty()) out_.control(task_token(task));
    pending_idx_ = -1;
  }

  std::vector<Turn> turns_;
  const RenderOptions& options_;
  bool thinks_;
  bool keeps_reasoning_;
  int64_t last_user_idx_ = -1;
  int64_t pending_idx_ = -1;  // a turn that still needs its assistant marker
  PieceList out_;
};

}  // namespace

Result<std::vector<Piece>> render_prompt(
    std::span<const Message> messages, const RenderOptions& options) {
  bool keeps_reasoning = !options.drop_old_reasoning;
  for (size_t i = 0; i < messages.size(); ++i) {
    TANDEM_TRY(check_message(messages[i], i));
    const auto has_tools = declares_tools(messages[i].tools_json);
    TANDEM_REQUIRE(
        has_tools.ok(), str_cat("message ", i, ": tools: ", has_tools.status().message()));
    keeps_reasoning = keeps_reasoning || *has_tools;
  }
  std::vector<Turn> turns = merge(messages);
  sort_results(turns);
  return Renderer(std::move(turns), options, keeps_reasoning).render();
}

}  // namespace tandem::v4
