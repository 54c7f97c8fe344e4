#pragma once

#include <memory>
#include <string>

#include "api/errors/api_error.h"
#include "api/generation/answer.h"
#include "api/generation/chat_request.h"
#include "api/json/json.h"
#include "api/metrics/server_metrics.h"

namespace tandem::api {

/// Writes one streamed response as server-sent events. Each call appends whole events to `out`.
/// Order: begin, then deltas and heartbeats, then end or error.
/// Threads: one owner.
class StreamEncoder {
 public:
  virtual ~StreamEncoder() = default;
  virtual void begin(std::string& out) = 0;
  virtual void delta(const Delta& delta, std::string& out) = 0;
  virtual void end(const Completion& completion, std::string& out) = 0;
  /// The response cannot be completed; nothing follows.
  virtual void error(const ApiError& error, std::string& out) = 0;
  /// Something that a client counts as a sign of life and that says nothing.
  virtual void heartbeat(std::string& out) = 0;
};

/// A request that a surface has read, with what that surface needs to answer it.
class SurfaceRequest {
 public:
  virtual ~SurfaceRequest() = default;

  ChatRequest chat;

  /// The body of a response that is not streamed.
  virtual Json write(const Completion& completion) const = 0;
  /// The encoder may refer to this request.
  virtual std::unique_ptr<StreamEncoder> encoder(const ResponseHead& head) const = 0;
};

/// One way to ask for a generation: a JSON dialect over HTTP. Immutable. Threads: any.
class Surface {
 public:
  virtual ~Surface() = default;
  virtual SurfaceKind kind() const = 0;
  virtual ErrorStyle error_style() const = 0;
  virtual std::string new_response_id() const = 0;
  virtual std::string tool_id_prefix() const { return "call_"; }
  /// Errors: 400 that names the field.
  virtual ApiResult<std::unique_ptr<SurfaceRequest>> read(const Json& body) const = 0;
};

}  // namespace tandem::api
