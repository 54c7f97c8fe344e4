#include "api/responses/responses_surface.h"

#include "api/generation/ids.h"
#include "api/responses/responses_encoder.h"
#include "api/responses/responses_reader.h"
#include "api/surface/observed_encoder.h"

namespace tandem::api {
namespace {

class ResponsesSurfaceRequest final : public SurfaceRequest {
 public:
  ResponsesSurfaceRequest(
      ResponsesRequest request, const ResponsesWriterOptions& options,
      std::shared_ptr<HiddenReasoning> hidden, std::shared_ptr<ConversationMemory> conversations)
      : request_(std::move(request)),
        options_(options),
        hidden_(std::move(hidden)),
        conversations_(std::move(conversations)) {
    chat = std::move(request_.chat);
  }

  Json write(const Completion& completion) const override {
    note(completion);
    return responses_response(request_, options_, completion);
  }

  std::unique_ptr<StreamEncoder> encoder(const ResponseHead& head) const override {
    return std::make_unique<ObservedEncoder>(
        responses_encoder(request_, options_, head),
        [this](const Completion& completion) { note(completion); });
  }

 private:
  void note(const Completion& completion) const {
    for (const Answer& answer : completion.choices) {
      hidden_->remember(answer);
      conversations_->remember(chat, answer);
    }
  }

  ResponsesRequest request_;  // without its chat
  ResponsesWriterOptions options_;
  const std::shared_ptr<HiddenReasoning> hidden_;
  const std::shared_ptr<ConversationMemory> conversations_;
};

}  // namespace

std::string ResponsesSurface::new_response_id() const {
  return random_id("resp_", 24);
}

ApiResult<std::unique_ptr<SurfaceRequest>> ResponsesSurface::read(const Json& body) const {
  auto request = read_responses_request(body);
  if (!request.ok()) return request.error();
  if (auto error = conversations_->resume(request->chat)) return *error;
  hidden_->attach(request->chat.messages);
  return std::unique_ptr<SurfaceRequest>(std::make_unique<ResponsesSurfaceRequest>(
      std::move(*request), options_, hidden_, conversations_));
}

}  // namespace tandem::api
