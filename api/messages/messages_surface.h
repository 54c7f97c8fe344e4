#pragma once

#include <memory>

#include "api/surface/surface.h"

namespace tandem::api {

/// POST /v1/messages.
class MessagesSurface final : public Surface {
 public:
  SurfaceKind kind() const override { return SurfaceKind::kMessages; }
  ErrorStyle error_style() const override { return ErrorStyle::kAnthropic; }
  std::string new_response_id() const override;
  std::string tool_id_prefix() const override { return "toolu_"; }
  ApiResult<std::unique_ptr<SurfaceRequest>> read(const Json& body) const override;
};

}  // namespace tandem::api
