#pragma once

#include <memory>

#include "api/surface/surface.h"

namespace tandem::api {

/// POST /v1/completions: the prompt as a chat of one turn, without tools.
class CompletionSurface final : public Surface {
 public:
  SurfaceKind kind() const override { return SurfaceKind::kCompletion; }
  ErrorStyle error_style() const override { return ErrorStyle::kOpenAi; }
  std::string new_response_id() const override;
  ApiResult<std::unique_ptr<SurfaceRequest>> read(const Json& body) const override;
};

}  // namespace tandem::api
