#include "api/messages/messages_surface.h"

#include "api/generation/ids.h"
#include "api/messages/messages_reader.h"
#include "api/messages/messages_writer.h"

namespace tandem::api {
namespace {

class MessagesSurfaceRequest final : public SurfaceRequest {
 public:
  explicit MessagesSurfaceRequest(ChatRequest request) { chat = std::move(request); }
  Json write(const Completion& completion) const override { return messages_response(completion); }
  std::unique_ptr<StreamEncoder> encoder(const ResponseHead& head) const override {
    return messages_encoder(head);
  }
};

}  // namespace

std::string MessagesSurface::new_response_id() const {
  return random_id("msg_", 24);
}

ApiResult<std::unique_ptr<SurfaceRequest>> MessagesSurface::read(const Json& body) const {
  auto request = read_messages_request(body, MessagesUse::kGenerate);
  if (!request.ok()) return request.error();
  return std::unique_ptr<SurfaceRequest>(
      std::make_unique<MessagesSurfaceRequest>(std::move(*request)));
}

}  // namespace tandem::api
