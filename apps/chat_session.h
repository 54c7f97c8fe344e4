#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "coordinator/engine/engine.h"
#include "model/spec/prompt.h"

namespace tandem {

/// Writes the transcript and the model's state behind it as one file: u64 JSON bytes, the JSON,
/// then the engine's saved state. Errors: those of FileSink and Engine::save_state.
Status save_chat(
    const std::string& path, std::span<const Message> messages, ThinkMode mode, Engine& engine,
    std::span<const int32_t> tokens);

struct LoadedChat {
  std::vector<Message> messages;
  ThinkMode mode = ThinkMode::kHigh;
  std::vector<int32_t> tokens;  // of the model's state
};

/// Errors: those of FileSource; kDataLoss if it is no saved chat; those of Engine::load_state.
Result<LoadedChat> load_chat(const std::string& path, Engine& engine);

}  // namespace tandem
