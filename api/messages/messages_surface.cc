#include "api/messages/messages_surface.h"

#include "api/generation/ids.h"
#include "api/messages/messages_reader.h"
#include "api/messages/messages_writer.h"
#include "api/surface/observed_encoder.h"

namespace tandem::api {
namespace {

class MessagesSurfaceRequest final : public SurfaceRequest {
 public:
  MessagesSurfaceRequest(ChatRequest request, std::shared_ptr<ConversationMemory> conversations)
      : conversations_(std::move(conversations)) {
    chat = std::move(request);
  }

  Json write(const Completion& completion) const override {
    note(completion);
    return messages_response(completion);
  }

  std::unique_ptr<StreamEncoder> encoder(const ResponseHead& head) const override {
    return std::make_unique<ObservedEncoder>(
        messages_encoder(head), [this](const Completion& completion) { note(completion); });
  }

 private:
  void note(const Completion& completion) const {
    for (const Answer& answer : completion.choices) conversations_->remember(chat, answer);
  }

  const std::shared_ptr<ConversationMemory> conversations_;
};

}  // namespace

std::string MessagesSurface::new_response_id() const {
  return random_id("msg_", 24);
}

ApiResult<std::unique_ptr<SurfaceRequest>> MessagesSurface::read(const Json& body) const {
  auto request = read_messages_request(body, MessagesUse::kGenerate);
  if (!request.ok()) return request.error();
  if (auto error = conversations_->resume(*request)) return *error;
  return std::unique_ptr<SurfaceRequest>(
      std::make_unique<MessagesSurfaceRequest>(std::move(*request), conversations_));
}

}  // namespace tandem::api
