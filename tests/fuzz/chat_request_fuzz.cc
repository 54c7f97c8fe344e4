// Reads arbitrary bytes as the body of a Chat or Completions request.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/chat/chat_surface.h"
#include "api/completions/completion_surface.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem::api;
  const auto json = parse_json({reinterpret_cast<const char*>(data), size});
  if (!json.ok()) return 0;
  // What was read can be written and read again.
  const auto again = parse_json(json_text(*json));
  if (!again.ok() || *again != *json) std::abort();
  static const ChatSurface chat;
  static const CompletionSurface completion;
  for (const Surface* surface :
       {static_cast<const Surface*>(&chat), static_cast<const Surface*>(&completion)}) {
    auto request = surface->read(*json);
    if (!request.ok() && request.error().message.empty()) std::abort();
  }
  return 0;
}
