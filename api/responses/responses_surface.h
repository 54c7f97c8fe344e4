#pragma once

#include <memory>

#include "api/responses/hidden_reasoning.h"
#include "api/responses/responses_writer.h"
#include "api/surface/conversation_memory.h"
#include "api/surface/surface.h"

namespace tandem::api {

/// POST /v1/responses. A request may hold the outputs of the last turn's calls alone.
class ResponsesSurface final : public Surface {
 public:
  explicit ResponsesSurface(const ResponsesWriterOptions& options = {}) : options_(options) {}

  SurfaceKind kind() const override { return SurfaceKind::kResponses; }
  ErrorStyle error_style() const override { return ErrorStyle::kOpenAi; }
  std::string new_response_id() const override;
  ApiResult<std::unique_ptr<SurfaceRequest>> read(const Json& body) const override;

 private:
  const ResponsesWriterOptions options_;
  // Shared with the requests that are under way.
  const std::shared_ptr<HiddenReasoning> hidden_ = std::make_shared<HiddenReasoning>();
  const std::shared_ptr<ConversationMemory> conversations_ = std::make_shared<ConversationMemory>();
};

}  // namespace tandem::api
