#pragma once

#include <memory>

#include "api/surface/conversation_memory.h"
#include "api/surface/surface.h"

namespace tandem::api {

/// POST /v1/messages. A request may hold the results of the last turn's calls alone.
class MessagesSurface final : public Surface {
 public:
  SurfaceKind kind() const override { return SurfaceKind::kMessages; }
  ErrorStyle error_style() const override { return ErrorStyle::kAnthropic; }
  std::string new_response_id() const override;
  std::string tool_id_prefix() const override { return "toolu_"; }
  ApiResult<std::unique_ptr<SurfaceRequest>> read(const Json& body) const override;

 private:
  // Shared with the requests that are under way.
  const std::shared_ptr<ConversationMemory> conversations_ = std::make_shared<ConversationMemory>();
};

}  // namespace tandem::api
