#pragma once

#include <memory>

#include "api/surface/surface.h"

namespace tandem::api {

/// POST /v1/chat/completions.
class ChatSurface final : public Surface {
 public:
  SurfaceKind kind() const override { return SurfaceKind::kChat; }
  ErrorStyle error_style() const override { return ErrorStyle::kOpenAi; }
  std::string new_response_id() const override;
  ApiResult<std::unique_ptr<SurfaceRequest>> read(const Json& body) const override;
};

}  // namespace tandem::api
