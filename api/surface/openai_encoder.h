#pragma once

#include <string>

#include "api/json/json.h"
#include "api/surface/surface.h"

namespace tandem::api {

/// What the streams of Chat and Completions share: chunks that start alike, usage in the last one,
/// `[DONE]` behind it.
class OpenAiEncoder : public StreamEncoder {
 public:
  void end(const Completion& completion, std::string& out) override;
  void error(const ApiError& error, std::string& out) override;
  void heartbeat(std::string& out) override;

 protected:
  /// object: the type that every chunk names.
  OpenAiEncoder(const ChatRequest& request, const ResponseHead& head, const char* object);

  /// {id, object, created, model}.
  const Json& chunk_head() const { return head_; }
  /// Appends a chunk with this choice alone.
  void write_choice(Json choice, std::string& out) const;

 private:
  const bool with_usage_;
  Json head_;
};

}  // namespace tandem::api
