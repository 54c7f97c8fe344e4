#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/sampling/sampling_params.h"
#include "model/spec/prompt.h"

namespace tandem::api {

/// A function the model may call.
struct Tool {
  std::string name;  // what the model sees and calls
  std::string json;  // {"name", "description", "parameters"} as the model sees it
};

enum class ToolChoice { kAuto, kNone, kRequired, kNamed };
enum class Effort { kNone, kLow, kHigh, kMax };
enum class OutputFormat { kText, kJsonObject, kJsonSchema };

/// What a client asks for, whichever surface it speaks.
struct ChatRequest {
  std::string model;  // as the client spelled it; echoed
  std::vector<Message> messages;
  std::vector<Tool> tools;
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string tool_name;            // of kNamed
  bool parallel_tool_calls = true;  // false: the turn ends with the first call
  SamplingParams sampling;
  std::optional<int64_t> max_tokens;  // 0: only read the prompt
  std::vector<std::string> stop;
  std::optional<Effort> effort;  // as the client asked; empty: the server's default
  int64_t num_choices = 1;
  OutputFormat format = OutputFormat::kText;
  std::string schema_json;   // of kJsonSchema
  std::string format_param;  // the field that a format which cannot be kept is blamed on
  bool stream = false;
  bool include_usage = false;     // streams: report usage at the end
  bool include_progress = false;  // streams: report how much of the prompt is read
  bool return_token_ids = false;
  std::string prompt_param = "messages";  // the field that a too long prompt is blamed on
};

}  // namespace tandem::api
