#include "api/chat/chat_surface.h"

#include "api/chat/chat_reader.h"
#include "api/chat/chat_writer.h"
#include "api/generation/ids.h"

namespace tandem::api {
namespace {

class ChatSurfaceRequest final : public SurfaceRequest {
 public:
  explicit ChatSurfaceRequest(ChatRequest request) { chat = std::move(request); }
  Json write(const Completion& completion) const override {
    return chat_response(chat, completion);
  }
  std::unique_ptr<StreamEncoder> encoder(const ResponseHead& head) const override {
    return chat_encoder(chat, head);
  }
};

}  // namespace

std::string ChatSurface::new_response_id() const {
  return random_id("chatcmpl-", 24);
}

ApiResult<std::unique_ptr<SurfaceRequest>> ChatSurface::read(const Json& body) const {
  auto request = read_chat_request(body);
  if (!request.ok()) return request.error();
  return std::unique_ptr<SurfaceRequest>(std::make_unique<ChatSurfaceRequest>(std::move(*request)));
}

}  // namespace tandem::api
