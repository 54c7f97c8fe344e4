#include "api/responses/responses_surface.h"

#include "api/generation/ids.h"
#include "api/responses/responses_encoder.h"
#include "api/responses/responses_reader.h"

namespace tandem::api {
namespace {

/// Remembers the reasoning of a complete answer before its end is written.
class RememberingEncoder final : public StreamEncoder {
 public:
  RememberingEncoder(std::unique_ptr<StreamEncoder> inner, std::shared_ptr<HiddenReasoning> hidden)
      : inner_(std::move(inner)), hidden_(std::move(hidden)) {}

  void begin(std::string& out) override { inner_->begin(out); }
  void delta(const Delta& delta, std::string& out) override { inner_->delta(delta, out); }
  void end(const Completion& completion, std::string& out) override {
    for (const Answer& answer : completion.choices) hidden_->remember(answer);
    inner_->end(completion, out);
  }
  void error(const ApiError& error, std::string& out) override { inner_->error(error, out); }
  void heartbeat(std::string& out) override { inner_->heartbeat(out); }

 private:
  std::unique_ptr<StreamEncoder> inner_;
  std::shared_ptr<HiddenReasoning> hidden_;
};

class ResponsesSurfaceRequest final : public SurfaceRequest {
 public:
  ResponsesSurfaceRequest(
      ResponsesRequest request, const ResponsesWriterOptions& options,
      std::shared_ptr<HiddenReasoning> hidden)
      : request_(std::move(request)), options_(options), hidden_(std::move(hidden)) {
    chat = std::move(request_.chat);
    hidden_->attach(chat.messages);
  }

  Json write(const Completion& completion) const override {
    for (const Answer& answer : completion.choices) hidden_->remember(answer);
    return responses_response(request_, options_, completion);
  }

  std::unique_ptr<StreamEncoder> encoder(const ResponseHead& head) const override {
    return std::make_unique<RememberingEncoder>(
        responses_encoder(request_, options_, head), hidden_);
  }

 private:
  ResponsesRequest request_;  // without its chat
  ResponsesWriterOptions options_;
  std::shared_ptr<HiddenReasoning> hidden_;
};

}  // namespace

std::string ResponsesSurface::new_response_id() const {
  return random_id("resp_", 24);
}

ApiResult<std::unique_ptr<SurfaceRequest>> ResponsesSurface::read(const Json& body) const {
  auto request = read_responses_request(body);
  if (!request.ok()) return request.error();
  return std::unique_ptr<SurfaceRequest>(
      std::make_unique<ResponsesSurfaceRequest>(std::move(*request), options_, hidden_));
}

}  // namespace tandem::api
